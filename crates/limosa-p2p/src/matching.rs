//! Matching of messages with receives (MPI-5, sections 3.5 and 3.8). Pure: no I/O, no clock, no locks.
//!
//! Two queues with the same structure: posted receives (whose patterns may have wildcards) and unexpected messages
//! (which receives and probes with wildcards search).
//!
//! Contract:
//! - a message matches the oldest posted receive that accepts it; a receive matches the oldest unexpected message that
//!   it accepts;
//! - the cost does not grow with the number of posted receives or unexpected messages: both queues are hashed.
//!
//! Implementation: entries live in a slab and are threaded on doubly linked lists found through a hash map. A posted
//! receive is on the one list of its pattern. An arriving message checks the (up to four) lists whose patterns match
//! it, and takes the oldest head. An unexpected message is on the list of its exact envelope. Once a form of wildcard
//! has been searched, it is also on the list for that form.

use rustc_hash::FxHashMap;

/// Rank of the sender in the communicator.
pub type Source = i32;
/// Message tag.
pub type Tag = i32;

/// Pattern of a receive or probe; `None` is the wildcard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Context id of the communicator.
    pub context: u64,
    /// Sender, or any.
    pub source: Option<Source>,
    /// Tag, or any.
    pub tag: Option<Tag>,
}

/// Envelope of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Context id of the communicator.
    pub context: u64,
    /// Sender.
    pub source: Source,
    /// Tag.
    pub tag: Tag,
}

impl Pattern {
    /// Returns whether a message with this envelope matches the pattern.
    pub fn matches(&self, envelope: &Envelope) -> bool {
        self.context == envelope.context
            && self.source.is_none_or(|s| s == envelope.source)
            && self.tag.is_none_or(|t| t == envelope.tag)
    }

    fn form(&self) -> usize {
        usize::from(self.source.is_none()) | usize::from(self.tag.is_none()) << 1
    }
}

/// Returns the pattern of the given form (bit 0: any source, bit 1: any tag) that an envelope matches.
fn generalise(envelope: &Envelope, form: usize) -> Pattern {
    Pattern {
        context: envelope.context,
        source: if form & 1 == 0 { Some(envelope.source) } else { None },
        tag: if form & 2 == 0 { Some(envelope.tag) } else { None },
    }
}

/// Entries that [`Matcher::some_unexpected`] inspects.
const MAX_INSPECTED: usize = 256;

const FORMS: usize = 4;
const NONE: u32 = u32::MAX;

type Key = (u64, u64);

/// Returns the hash key of a pattern. User ranks and tags are non-negative, so -1 encodes a wildcard.
fn key(pattern: &Pattern) -> Key {
    let source = pattern.source.unwrap_or(-1) as u32;
    let tag = pattern.tag.unwrap_or(-1) as u32;
    (pattern.context, u64::from(source) << 32 | u64::from(tag))
}

/// Returns the pattern of a hash key.
fn pattern_of((context, word): Key) -> Pattern {
    let rank_or_any = |half: u32| if half == u32::MAX { None } else { Some(half as i32) };
    Pattern { context, source: rank_or_any((word >> 32) as u32), tag: rank_or_any(word as u32) }
}

/// A list of entries with the same key.
struct List {
    key: Key,
    head: u32,
    tail: u32,
}

/// All lists of a queue. Empty lists are kept, since the next entry probably has the same key; when there are many,
/// they are swept.
struct Lists {
    all: Vec<List>,
    free: Vec<u32>,
    by_key: FxHashMap<Key, u32>,
    /// For each form the list that was last found: usually the next one too.
    last: [u32; FORMS],
    sweep_at: usize,
}

/// Number of lists that are kept even if empty.
const KEPT_LISTS: usize = 64;

impl Lists {
    fn new() -> Lists {
        Lists {
            all: Vec::new(),
            free: Vec::new(),
            by_key: FxHashMap::default(),
            last: [NONE; FORMS],
            sweep_at: KEPT_LISTS,
        }
    }

    #[inline]
    fn find(&mut self, form: usize, key: Key) -> Option<u32> {
        let last = self.last[form];
        if self.all.get(last as usize).is_some_and(|list| list.key == key) {
            return Some(last);
        }
        let index = *self.by_key.get(&key)?;
        self.last[form] = index;
        Some(index)
    }

    #[inline]
    fn find_or_make(&mut self, form: usize, key: Key) -> u32 {
        self.find(form, key).unwrap_or_else(|| self.make(form, key))
    }

    #[inline(never)]
    fn make(&mut self, form: usize, key: Key) -> u32 {
        if self.by_key.len() >= self.sweep_at {
            self.sweep();
        }
        let list = List { key, head: NONE, tail: NONE };
        let index = match self.free.pop() {
            Some(index) => {
                self.all[index as usize] = list;
                index
            }
            None => {
                self.all.push(list);
                u32::try_from(self.all.len() - 1).expect("there are no more lists than entries")
            }
        };
        self.by_key.insert(key, index);
        self.last[form] = index;
        index
    }

    /// Frees the empty lists. The next sweep comes at twice the number of lists now in use.
    fn sweep(&mut self) {
        let (all, free) = (&self.all, &mut self.free);
        self.by_key.retain(|_, &mut index| {
            let used = all[index as usize].head != NONE;
            if !used {
                free.push(index);
            }
            used
        });
        self.last = [NONE; FORMS];
        self.sweep_at = KEPT_LISTS.max(2 * self.by_key.len());
    }
}

/// Position of a node on one list; `list` is [`NONE`] if it is on none.
#[derive(Clone, Copy)]
struct Links {
    list: u32,
    prev: u32,
    next: u32,
}

const UNLINKED: Links = Links { list: NONE, prev: NONE, next: NONE };

struct Node<T, const N: usize> {
    /// `None` marks a free slot.
    value: Option<T>,
    links: [Links; N],
    order: u64,
    generation: u32,
}

/// Name of a queue entry; stale names are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryId {
    index: u32,
    generation: u32,
    form: u8,
}

/// A slab of entries, each threaded on up to `N` hashed lists.
struct Store<T, const N: usize> {
    nodes: Vec<Node<T, N>>,
    free: Vec<u32>,
    lists: Lists,
    next_order: u64,
    len: usize,
}

impl<T, const N: usize> Store<T, N> {
    fn new() -> Store<T, N> {
        Store { nodes: Vec::new(), free: Vec::new(), lists: Lists::new(), next_order: 0, len: 0 }
    }

    #[inline]
    fn insert(&mut self, value: T) -> u32 {
        let order = self.next_order;
        self.next_order += 1;
        self.len += 1;
        if let Some(index) = self.free.pop() {
            let node = &mut self.nodes[index as usize];
            node.value = Some(value);
            node.order = order;
            return index;
        }
        self.nodes.push(Node { value: Some(value), links: [UNLINKED; N], order, generation: 0 });
        u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 messages wait at once")
    }

    /// Appends node `index` to the list of `key`, of this form, through its links number `place`.
    #[inline]
    fn link(&mut self, index: u32, place: usize, form: usize, key: Key) {
        let number = self.lists.find_or_make(form, key);
        let list = &mut self.lists.all[number as usize];
        let tail = std::mem::replace(&mut list.tail, index);
        if tail == NONE {
            list.head = index;
        } else {
            self.nodes[tail as usize].links[place].next = index;
        }
        self.nodes[index as usize].links[place] = Links { list: number, prev: tail, next: NONE };
    }

    #[inline]
    fn unlink(&mut self, index: u32, place: usize) {
        let Links { list, prev, next } = std::mem::replace(&mut self.nodes[index as usize].links[place], UNLINKED);
        if list == NONE {
            return;
        }
        match prev {
            NONE => self.lists.all[list as usize].head = next,
            _ => self.nodes[prev as usize].links[place].next = next,
        }
        match next {
            NONE => self.lists.all[list as usize].tail = prev,
            _ => self.nodes[next as usize].links[place].prev = prev,
        }
    }

    #[inline]
    fn remove(&mut self, index: u32) -> T {
        for place in 0..N {
            self.unlink(index, place);
        }
        let node = &mut self.nodes[index as usize];
        node.generation = node.generation.wrapping_add(1);
        self.free.push(index);
        self.len -= 1;
        node.value.take().expect("a listed node holds a value")
    }

    #[inline]
    fn head(&mut self, form: usize, key: Key) -> Option<u32> {
        let list = self.lists.find(form, key)?;
        Some(self.lists.all[list as usize].head).filter(|&head| head != NONE)
    }

    fn id(&self, index: u32, form: usize) -> EntryId {
        EntryId { index, generation: self.nodes[index as usize].generation, form: form as u8 }
    }

    fn find(&self, id: EntryId) -> Option<u32> {
        let node = self.nodes.get(id.index as usize)?;
        (node.value.is_some() && node.generation == id.generation).then_some(id.index)
    }
}

/// Queues of posted receives (`P`) and unexpected messages (`U`).
pub struct Matcher<P, U> {
    posted: Store<P, 1>,
    /// Number of posted receives of each form.
    posted_forms: [usize; FORMS],
    /// Bit `f` is set if there are posted receives of form `f`.
    forms_in_use: u32,
    unexpected: Store<(Envelope, U), FORMS>,
    /// Forms for which unexpected messages are threaded; the exact form always is.
    threaded: [bool; FORMS],
}

impl<P, U> Default for Matcher<P, U> {
    fn default() -> Self {
        Matcher {
            posted: Store::new(),
            posted_forms: [0; FORMS],
            forms_in_use: 0,
            unexpected: Store::new(),
            threaded: [true, false, false, false],
        }
    }
}

impl<P, U> Matcher<P, U> {
    /// Posts a receive. The caller has checked with [`Matcher::take`] that no unexpected message matches it.
    #[inline]
    pub fn post(&mut self, pattern: &Pattern, receive: P) -> EntryId {
        let index = self.posted.insert(receive);
        let form = pattern.form();
        self.posted.link(index, 0, form, key(pattern));
        self.posted_forms[form] += 1;
        self.forms_in_use |= 1 << form;
        self.posted.id(index, form)
    }

    /// Takes the posted receive that matches an arriving message.
    #[inline]
    pub fn arrive(&mut self, envelope: &Envelope) -> Option<P> {
        let forms = self.forms_in_use;
        if forms == 0 {
            return None;
        }
        let (index, form) = if forms.is_power_of_two() {
            let form = forms.trailing_zeros() as usize;
            (self.posted.head(form, key(&generalise(envelope, form)))?, form)
        } else {
            self.oldest(envelope)?
        };
        self.forget_form(form);
        Some(self.posted.remove(index))
    }

    /// Returns the oldest of the posted receives, of several forms, that match a message.
    #[inline(never)]
    fn oldest(&mut self, envelope: &Envelope) -> Option<(u32, usize)> {
        let forms = (0..FORMS).filter(|form| self.forms_in_use & 1 << form != 0);
        let posted = &mut self.posted;
        let heads = forms.filter_map(|form| {
            posted
                .head(form, key(&generalise(envelope, form)))
                .map(|index| (posted.nodes[index as usize].order, index, form))
        });
        heads.min().map(|(_, index, form)| (index, form))
    }

    /// Decrements the number of posted receives of this form.
    #[inline]
    fn forget_form(&mut self, form: usize) {
        self.posted_forms[form] -= 1;
        if self.posted_forms[form] == 0 {
            self.forms_in_use &= !(1 << form);
        }
    }

    /// Removes a posted receive. Returns `None` if it has been matched already.
    pub fn withdraw(&mut self, id: EntryId) -> Option<P> {
        let index = self.posted.find(id)?;
        self.forget_form(usize::from(id.form));
        Some(self.posted.remove(index))
    }

    /// Makes room for one more unexpected message. Returns false if there is no memory.
    pub fn make_room(&mut self) -> bool {
        let store = &mut self.unexpected;
        let (nodes, lists) = (usize::from(store.free.is_empty()), FORMS.saturating_sub(store.lists.free.len()));
        store.nodes.try_reserve(nodes).is_ok()
            && store.lists.all.try_reserve(lists).is_ok()
            && store.lists.by_key.try_reserve(FORMS).is_ok()
    }

    /// Returns all posted receives with their patterns: for slow paths.
    pub fn posted(&self) -> Vec<(EntryId, Pattern)> {
        let lists = &self.posted.lists.all;
        let is_used = |(_, node): &(usize, &Node<P, 1>)| node.value.is_some();
        let describe = |(index, node): (usize, &Node<P, 1>)| {
            let pattern = pattern_of(lists[node.links[0].list as usize].key);
            (self.posted.id(index as u32, pattern.form()), pattern)
        };
        self.posted.nodes.iter().enumerate().filter(is_used).map(describe).collect()
    }

    /// Stores an unexpected message.
    pub fn store(&mut self, envelope: &Envelope, message: U) -> EntryId {
        let index = self.unexpected.insert((*envelope, message));
        for form in 0..FORMS {
            if self.threaded[form] {
                self.unexpected.link(index, form, form, key(&generalise(envelope, form)));
            }
        }
        self.unexpected.id(index, 0)
    }

    /// Returns an unexpected message; `None` if it has been taken.
    pub fn unexpected_mut(&mut self, id: EntryId) -> Option<&mut U> {
        let index = self.unexpected.find(id)?;
        self.unexpected.nodes[index as usize].value.as_mut().map(|(_, message)| message)
    }

    #[inline]
    fn lookup(&mut self, pattern: &Pattern) -> Option<u32> {
        if self.unexpected.len == 0 {
            return None;
        }
        let form = pattern.form();
        if !self.threaded[form] {
            self.thread(form);
        }
        self.unexpected.head(form, key(pattern))
    }

    /// Threads all unexpected messages for a form of wildcard that is searched for the first time.
    #[cold]
    fn thread(&mut self, form: usize) {
        self.threaded[form] = true;
        let mut waiting: Vec<(u64, u32)> = (0..self.unexpected.nodes.len() as u32)
            .filter(|&i| self.unexpected.nodes[i as usize].value.is_some())
            .map(|i| (self.unexpected.nodes[i as usize].order, i))
            .collect();
        waiting.sort_unstable();
        for (_, index) in waiting {
            let (envelope, _) = self.unexpected.nodes[index as usize].value.as_ref().expect("filtered above");
            let pattern = generalise(envelope, form);
            self.unexpected.link(index, form, form, key(&pattern));
        }
    }

    /// Returns the oldest unexpected message that the pattern matches (a probe).
    pub fn probe(&mut self, pattern: &Pattern) -> Option<(&Envelope, &U)> {
        let index = self.lookup(pattern)?;
        let (envelope, message) =
            self.unexpected.nodes[index as usize].value.as_ref().expect("a listed node holds a value");
        Some((envelope, message))
    }

    /// Takes the oldest unexpected message that the pattern matches.
    #[inline]
    pub fn take(&mut self, pattern: &Pattern) -> Option<(Envelope, U)> {
        let index = self.lookup(pattern)?;
        Some(self.unexpected.remove(index))
    }

    /// Takes the oldest unexpected message with this envelope for which `wanted` holds: for the recall of a particular
    /// send.
    pub fn take_where(&mut self, envelope: &Envelope, wanted: impl Fn(&U) -> bool) -> Option<U> {
        let mut index = self.unexpected.head(0, key(&generalise(envelope, 0)))?;
        while index != NONE {
            let node = &self.unexpected.nodes[index as usize];
            if node.value.as_ref().is_some_and(|(_, message)| wanted(message)) {
                return Some(self.unexpected.remove(index).1);
            }
            index = node.links[0].next;
        }
        None
    }

    /// Returns the unexpected messages, oldest first.
    pub fn unexpected(&self) -> impl Iterator<Item = (&Envelope, &U)> {
        let mut held: Vec<_> = self.unexpected.nodes.iter().filter(|node| node.value.is_some()).collect();
        held.sort_unstable_by_key(|node| node.order);
        held.into_iter().filter_map(|node| node.value.as_ref()).map(|(envelope, message)| (envelope, message))
    }

    /// Returns some unexpected messages, in bounded time.
    pub fn some_unexpected(&self) -> impl Iterator<Item = (&Envelope, &U)> {
        let looked_at = if self.unexpected.len == 0 { 0 } else { self.unexpected.nodes.len().min(MAX_INSPECTED) };
        let held = self.unexpected.nodes[..looked_at].iter().filter_map(|node| node.value.as_ref());
        held.map(|(envelope, message)| (envelope, message))
    }

    /// Returns the number of unexpected messages.
    pub fn unexpected_len(&self) -> usize {
        self.unexpected.len
    }

    /// Returns the number of posted receives.
    pub fn posted_len(&self) -> usize {
        self.posted.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference implementation: two lists, searched from the front.
    #[derive(Default)]
    struct Oracle {
        posted: Vec<(Pattern, u32)>,
        unexpected: Vec<(Envelope, u32)>,
    }

    impl Oracle {
        fn arrive(&mut self, envelope: &Envelope) -> Option<u32> {
            let at = self.posted.iter().position(|(p, _)| p.matches(envelope))?;
            Some(self.posted.remove(at).1)
        }

        fn take(&mut self, pattern: &Pattern) -> Option<u32> {
            let at = self.unexpected.iter().position(|(e, _)| pattern.matches(e))?;
            Some(self.unexpected.remove(at).1)
        }
    }

    #[derive(Clone, Debug)]
    enum Event {
        Receive(Pattern),
        Message(Envelope),
        Probe(Pattern),
        Withdraw(usize),
        Recall(usize),
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let pattern = (0..2u64, prop::option::weighted(0.7, 0..3), prop::option::weighted(0.7, 0..3))
            .prop_map(|(context, source, tag)| Pattern { context, source, tag });
        let envelope = (0..2u64, 0..3, 0..3).prop_map(|(context, source, tag)| Envelope { context, source, tag });
        let event = prop_oneof![
            5 => pattern.clone().prop_map(Event::Receive),
            5 => envelope.prop_map(Event::Message),
            1 => pattern.prop_map(Event::Probe),
            1 => (0..20usize).prop_map(Event::Withdraw),
            1 => (0..20usize).prop_map(Event::Recall),
        ];
        prop::collection::vec(event, 0..200)
    }

    proptest! {
        #[test]
        fn agrees_with_a_linear_search(events in events()) {
            let mut matcher = Matcher::<u32, u32>::default();
            let mut oracle = Oracle::default();
            let mut ids = std::collections::HashMap::new();
            for (number, event) in events.into_iter().enumerate() {
                let number = number as u32;
                match event {
                    Event::Receive(pattern) => {
                        let got = matcher.take(&pattern).map(|(_, u)| u);
                        prop_assert_eq!(got, oracle.take(&pattern));
                        if got.is_none() {
                            ids.insert(number, (matcher.post(&pattern, number), pattern));
                            oracle.posted.push((pattern, number));
                        }
                    }
                    Event::Message(envelope) => {
                        let got = matcher.arrive(&envelope);
                        prop_assert_eq!(got, oracle.arrive(&envelope));
                        if got.is_none() {
                            matcher.store(&envelope, number);
                            oracle.unexpected.push((envelope, number));
                        }
                    }
                    Event::Probe(pattern) => {
                        let got = matcher.probe(&pattern).map(|(e, u)| (*e, *u));
                        prop_assert_eq!(got, oracle.unexpected.iter().find(|(e, _)| pattern.matches(e)).copied());
                    }
                    Event::Withdraw(at) => {
                        if at < oracle.posted.len() {
                            let (_, number) = oracle.posted.remove(at);
                            let (id, pattern) = ids[&number];
                            prop_assert!(matcher.posted().contains(&(id, pattern)));
                            prop_assert_eq!(matcher.withdraw(id), Some(number));
                            prop_assert_eq!(matcher.withdraw(id), None);
                        }
                    }
                    Event::Recall(at) => {
                        if at < oracle.unexpected.len() {
                            let (envelope, number) = oracle.unexpected.remove(at);
                            prop_assert_eq!(matcher.take_where(&envelope, |&u| u == number), Some(number));
                        }
                    }
                }
                prop_assert_eq!(matcher.posted_len(), oracle.posted.len());
                prop_assert_eq!(matcher.unexpected_len(), oracle.unexpected.len());
            }
        }
    }

    #[test]
    fn the_lists_of_tags_that_are_never_used_again_are_swept_away() {
        let mut matcher = Matcher::<u32, u32>::default();
        for tag in 0..100_000 {
            matcher.post(&Pattern { context: 0, source: Some(0), tag: Some(tag) }, 0);
            assert_eq!(matcher.arrive(&Envelope { context: 0, source: 0, tag }), Some(0));
            matcher.store(&Envelope { context: 0, source: 0, tag }, 0);
            assert!(matcher.take(&Pattern { context: 0, source: None, tag: Some(tag) }).is_some());
        }
        assert!(matcher.posted.lists.all.len() <= 2 * KEPT_LISTS);
        assert!(matcher.unexpected.lists.all.len() <= 2 * KEPT_LISTS);
    }
}
