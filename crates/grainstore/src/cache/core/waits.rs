//! Who waits for whom, so that a build that would wait for itself is told instead.
//!
//! The graph is the process's, across caches. A node is a build, or a callback that others may have
//! to wait for. There is an edge from a build to each build it waits for, and to each build begun
//! inside it. Each thread keeps the stack of what it is inside of; a thread that is inside nothing
//! can be waited for by nobody, so it never touches the graph.

use std::cell::RefCell;
use std::ops::Range;

use crate::hashing::HashMap;
use crate::sync::{Mutex, Serials, per_thread, process_wide};

/// A build, or a callback, in the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Node(u64);

process_wide! {
    static NODES: Serials = Serials::new();
}

/// New nodes, for one cache.
#[derive(Default)]
pub(crate) struct Nodes(Range<u64>);

impl Nodes {
    pub(crate) fn next(&mut self) -> Node {
        Node(NODES.next_of(&mut self.0))
    }
}

/// What a thread is inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    /// A build.
    Build,
    /// An `idle`, asked about the value at this address.
    Idle(usize),
    /// A release.
    Release,
}

#[derive(Clone, Copy)]
struct Frame {
    node: Node,
    cache: u64,
    inside: Inside,
}

per_thread! {
    static STACK: RefCell<Vec<Frame>> = RefCell::new(Vec::new());
}

process_wide! {
    /// Edges, from the one that waits.
    static GRAPH: Mutex<Option<HashMap<Node, Vec<Node>>>> = Mutex::new(None);
}

fn with_stack<R>(look: impl FnOnce(&mut Vec<Frame>) -> R) -> Option<R> {
    STACK.try_with(|stack| look(&mut stack.borrow_mut())).ok()
}

/// This thread is inside a callback until the guard is dropped.
#[must_use]
pub(crate) struct Entered {
    edge: Option<Edge>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        with_stack(Vec::pop);
        self.edge.take();
    }
}

/// Enters a callback of that cache. Whoever waits for what this thread was inside of before now
/// waits for this, too.
pub(crate) fn enter(node: Node, cache: u64, inside: Inside) -> Entered {
    let frame = Frame { node, cache, inside };
    let parent = with_stack(|stack| {
        let parent = stack.last().map(|frame| frame.node);
        stack.push(frame);
        parent
    });
    let edge = parent.flatten().filter(|&parent| parent != node);
    Entered { edge: edge.map(|parent| Edge::add(&mut lock_graph(), parent, node)) }
}

/// The edge that says that what this thread is inside of waits for that build, which was begun in
/// it, also while nobody polls it.
pub(crate) fn nest(node: Node) -> Option<Edge> {
    let parent = with_stack(|stack| stack.last().map(|frame| frame.node)).flatten()?;
    (parent != node).then(|| Edge::add(&mut lock_graph(), parent, node))
}

/// Enters a release, for which nobody waits by itself: it is part of what this thread is inside of.
pub(crate) fn enter_release(cache: u64) -> Entered {
    with_stack(|stack| {
        let node = stack.last().map_or(Node(0), |frame| frame.node);
        stack.push(Frame { node, cache, inside: Inside::Release });
    });
    Entered { edge: None }
}

/// One edge of the graph, until it is dropped.
#[must_use]
pub(crate) struct Edge {
    from: Node,
    to: Node,
}

impl Edge {
    fn add(graph: &mut GraphGuard, from: Node, to: Node) -> Self {
        graph.get_or_insert_with(HashMap::default).entry(from).or_default().push(to);
        Self { from, to }
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        let mut graph = lock_graph();
        let Some(edges) = graph.as_mut() else { return };
        if let Some(targets) = edges.get_mut(&self.from) {
            if let Some(at) = targets.iter().position(|&to| to == self.to) {
                targets.swap_remove(at);
            }
            if targets.is_empty() {
                edges.remove(&self.from);
            }
        }
    }
}

type GraphGuard = crate::sync::MutexGuard<'static, Option<HashMap<Node, Vec<Node>>>>;

fn lock_graph() -> GraphGuard {
    GRAPH.lock()
}

/// The wait would never end.
#[derive(Debug)]
pub(crate) struct WouldCycle;

/// Says that this thread is about to wait for these nodes, until the edges are dropped.
pub(crate) fn wait_for(nodes: &[Node]) -> Result<Vec<Edge>, WouldCycle> {
    let mine = with_stack(|stack| stack.iter().map(|frame| frame.node).collect::<Vec<_>>());
    let mine = mine.unwrap_or_default();
    let Some(&top) = mine.last() else { return Ok(Vec::new()) };
    let mut graph = lock_graph();
    if nodes.iter().any(|&node| reaches(graph.as_ref(), node, &mine)) {
        return Err(WouldCycle);
    }
    Ok(nodes.iter().map(|&node| Edge::add(&mut graph, top, node)).collect())
}

fn reaches(graph: Option<&HashMap<Node, Vec<Node>>>, start: Node, mine: &[Node]) -> bool {
    let mut seen = vec![start];
    let mut next = 0;
    while let Some(&node) = seen.get(next) {
        next += 1;
        if mine.contains(&node) {
            return true;
        }
        for &target in graph.and_then(|graph| graph.get(&node)).into_iter().flatten() {
            if !seen.contains(&target) {
                seen.push(target);
            }
        }
    }
    false
}

/// Whether this thread is inside any callback of that cache.
pub(crate) fn is_inside(cache: u64) -> bool {
    with_stack(|stack| stack.iter().any(|frame| frame.cache == cache)).unwrap_or(false)
}

/// Whether this thread is inside an `idle` or a release of that cache.
pub(crate) fn is_inside_reap(cache: u64) -> bool {
    let reaps = |frame: &Frame| frame.cache == cache && frame.inside != Inside::Build;
    with_stack(|stack| stack.iter().any(reaps)).unwrap_or(false)
}

/// Whether this thread is inside an `idle` that was asked about the value at this address.
pub(crate) fn is_asking_about(value: usize) -> bool {
    let asks = |frame: &Frame| frame.inside == Inside::Idle(value);
    with_stack(|stack| stack.iter().any(asks)).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_node_is_given_twice() {
        let mut all = std::collections::HashSet::new();
        let mut caches = [Nodes::default(), Nodes::default(), Nodes::default()];
        for _ in 0..3 * Serials::BLOCK {
            for nodes in &mut caches {
                assert!(all.insert(nodes.next()));
            }
        }
    }
}
