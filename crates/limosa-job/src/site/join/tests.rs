//! Ranks as threads, with a launcher that speaks PMI-1 and pretends hosts.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier, Mutex};

use proptest::prelude::*;

use super::*;
use crate::site::pmi::{Client, Line};

/// What a process of the tests does with its launcher.
type Part<'a, T> = &'a (dyn Fn(&mut Client) -> T + Sync);

/// What all connections of a launcher share.
struct Launcher {
    notices: Mutex<HashMap<String, String>>,
    fence: Barrier,
}

impl Launcher {
    /// Serves one process until it takes leave or has gone.
    fn serve(&self, stream: &UnixStream) {
        let mut from = BufReader::new(stream);
        let mut to = stream;
        let mut text = String::new();
        while from.read_line(&mut text).is_ok_and(|bytes| bytes > 0) {
            let line = Line::parse(text.as_bytes());
            let get = |key: &str| line.get(key).unwrap_or("").to_owned();
            let answer = match &*get("cmd") {
                "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned(),
                "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1".to_owned(),
                "get_appnum" => "cmd=appnum appnum=0".to_owned(),
                "put" => {
                    self.notices.lock().expect("whole").insert(get("key"), get("value"));
                    "cmd=put_result rc=0 msg=success".to_owned()
                }
                "barrier_in" => {
                    self.fence.wait();
                    "cmd=barrier_out rc=0".to_owned()
                }
                "get" => match self.notices.lock().expect("whole").get(&get("key")) {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                    None => "cmd=get_result rc=-1 msg=key_not_found".to_owned(),
                },
                "finalize" => "cmd=finalize_ack".to_owned(),
                other => panic!("a process asks for `{other}`"),
            };
            to.write_all(format!("{answer}\n").as_bytes()).expect("the process reads");
            text.clear();
        }
    }
}

/// What `size` processes return that one launcher has started.
fn run<T: Send>(size: u32, part: Part<'_, T>) -> Vec<T> {
    let launcher = Arc::new(Launcher { notices: Mutex::default(), fence: Barrier::new(size as usize) });
    std::thread::scope(|scope| {
        let process = |rank| {
            let (ours, theirs) = UnixStream::pair().expect("sockets");
            let launcher = launcher.clone();
            scope.spawn(move || launcher.serve(&ours));
            scope.spawn(move || {
                let mut client = Client::start("a test", OwnedFd::from(theirs), (rank, size)).expect("PMI");
                let done = part(&mut client);
                client.finalize();
                done
            })
        };
        let processes: Vec<_> = (0..size).map(process).collect();
        processes.into_iter().map(|process| process.join().expect("no panic")).collect()
    })
}

#[test]
fn processes_of_one_host_get_one_memory() {
    let joined = run(4, &|client| {
        let (_segment, board) = join(client).expect("joined");
        let rank = client.place().0;
        board.seat(rank).publish_card(&[rank as u8 + 1]);
        client.fence().expect("all are there");
        let cards: Vec<_> = (0..4).map(|rank| board.seat(rank).card()).collect();
        // The file ends with the process that made it: none leaves early.
        client.fence().expect("all have looked");
        (board.id(), board.size(), board.hosts(), cards)
    });
    let cards: Vec<_> = (1..=4).map(|card| Some(vec![card])).collect();
    let first = joined[0].0;
    assert_ne!(first, 0);
    assert!(joined.iter().all(|each| *each == (first, 4, 1, cards.clone())), "{joined:?}");
}

#[test]
fn a_refusal_of_the_launcher_is_an_error_that_says_so() {
    let refused = run(1, &|client| client.get(0, "nothing").expect_err("there is no such notice"));
    assert!(refused[0].contains("refuses") && refused[0].contains("key_not_found"), "{refused:?}");
}

#[test]
fn a_launcher_that_has_gone_is_an_error() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    drop(ours);
    let error = Client::start("a test", OwnedFd::from(theirs), (0, 2)).err().expect("there is no answer");
    assert!(error.contains("no message") || error.contains("closed"), "{error}");
}

fn notice(host: &str) -> Notice {
    Notice { version: VERSION, appnum: 0, id: 7, host: host.into(), name: host.to_uppercase() }
}

#[test]
fn ranks_that_follow_each_other_on_a_host_are_a_block() {
    let of = |hosts: &str| {
        let notices: Vec<Notice> = hosts.chars().map(|host| notice(&host.to_string())).collect();
        blocks(&notices).into_iter().map(|block| (block.name, block.ranks)).collect::<Vec<_>>()
    };
    assert_eq!(of("aaa"), [("A".to_owned(), 0..3)]);
    assert_eq!(of("aab"), [("A".to_owned(), 0..2), ("B".to_owned(), 2..3)]);
    assert_eq!(of("aba"), [("A".to_owned(), 0..1), ("B".to_owned(), 1..2), ("A".to_owned(), 2..3)]);
}

#[test]
fn a_notice_comes_back_as_it_was_written() {
    let notice = Notice::mine(3).expect("random numbers");
    assert_eq!(Notice::read(&notice.write()), Some(notice.clone()));
    assert!(notice.write().len() <= crate::site::LONGEST && !notice.host.is_empty(), "{notice:?}");
}

proptest! {
    #[test]
    fn a_card_comes_back_as_it_was_sent(card in proptest::collection::vec(any::<u8>(), 0..=CARD_BYTES)) {
        prop_assert_eq!(bytes(&hexadecimal(&card)), Some(card));
    }

    #[test]
    fn notices_and_cards_of_any_text_are_read_or_refused(text in ".{0,60}", digits in "x[0-9a-fg]{0,600}") {
        let _ = (Notice::read(&text), bytes(&text));
        prop_assert!(bytes(&digits).is_none_or(|card| card.len() <= CARD_BYTES));
    }

    #[test]
    fn a_launcher_that_answers_anything_does_no_harm(answers in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        ours.write_all(&answers).expect("room");
        ours.shutdown(std::net::Shutdown::Write).expect("a socket");
        let client = Client::start("a test", OwnedFd::from(theirs), (0, 2));
        prop_assert!(client.is_err());
    }

    #[test]
    fn half_right_answers_are_read_or_refused(lines in proptest::collection::vec(
        "cmd=(response_to_init|my_kvsname|get_result|put_result|barrier_out|appnum)( (rc|kvsname|value|appnum)=[0-9a-z-]{0,5}){0,3}",
        0..12,
    )) {
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        ours.write_all(format!("{}\n", lines.join("\n")).as_bytes()).expect("room");
        ours.shutdown(std::net::Shutdown::Write).expect("a socket");
        if let Ok(mut client) = Client::start("a test", OwnedFd::from(theirs), (1, 2)) {
            let _ = (client.appnum(), client.put("host", "a"), client.fence(), client.get(0, "host"));
            client.finalize();
        }
    }
}
