//! Orders of the head on their way through the tree of logins.

use super::link::Link;
use super::wire::Order;

/// Maximum number of bytes that one message passes on.
const PART: usize = 1 << 20;

/// Sends an order to the agent of a host, unless it is lost.
pub fn order(links: &mut [Option<Link>], host: usize, order: &Order) {
    if let Some(link) = links.get_mut(host).and_then(Option::as_mut) {
        link.send(order);
    }
}

/// Sends an order to all agents, behind the news.
pub fn order_all(links: &mut [Option<Link>], news: &mut Vec<u8>, order: &Order) {
    pass_on(links, news);
    links.iter_mut().flatten().for_each(|link| link.send(order));
    pass_on(links, news);
}

/// Sends orders for distant agents to the agents on the way, then `news` for all hosts to the agents that the head has
/// logged in to; these spread it. An agent that has not answered yet gets the news when it does.
pub fn pass_on(links: &mut [Option<Link>], news: &mut Vec<u8>) {
    // A host comes behind the one that has logged in to it.
    for host in (0..links.len()).rev() {
        let Some((by, shares, bytes)) = links[host].as_mut().and_then(Link::take_for_passing) else { continue };
        if shares {
            order(links, by, &Order::Share(host as u32));
        }
        for part in bytes.chunks(PART) {
            order(links, by, &Order::Pass(host as u32, part.to_vec()));
        }
    }
    if news.is_empty() {
        return;
    }
    let spread = Order::Spread(std::mem::take(news));
    for link in links.iter_mut().flatten() {
        if !link.is_there() || link.through().is_none() {
            link.send(&spread);
        }
    }
}
