//! Who is differentiating: one id for each live transform, and the ids that a value depends on.

use super::context::is_suspended;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The transform behind `requires_grad` and `backward`, which lives for ever. Ids of others are larger, and grow with
/// time: of two live transforms the one with the larger id is the inner one. 0 stands for none, and 1 for [devices](crate::tensor::DEVICE).
pub(crate) const AMBIENT: u64 = 2;

const SLOTS: u64 = 1024;
/// The id that lives in each slot. An id remembers its slot in its lowest bits.
static LIVE: [AtomicU64; SLOTS as usize] = [const { AtomicU64::new(0) }; SLOTS as usize];
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A live transform; it ends when this is dropped.
pub(crate) struct Level(u64);

impl Level {
    pub fn new() -> Level {
        let n = NEXT.fetch_add(1, Relaxed);
        // Slots are looked for from a moving start, so the first is almost always free. If all are taken, the id
        // lives in none and counts as alive for ever: its records are kept longer, and nothing else changes.
        let slot = (0..SLOTS - 1).map(|k| 1 + (n + k) % (SLOTS - 1));
        for slot in slot {
            let id = n * SLOTS + slot;
            if LIVE[slot as usize].compare_exchange(0, id, Relaxed, Relaxed).is_ok() {
                return Level(id);
            }
        }
        Level(n * SLOTS)
    }

    pub fn id(&self) -> u64 {
        self.0
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        let slot = self.0 % SLOTS;
        if slot != 0 {
            LIVE[slot as usize].store(0, Relaxed);
        }
    }
}

/// No transform so far has a larger id, and all that begin later do.
pub(super) fn newest() -> u64 {
    NEXT.load(Relaxed) * SLOTS - 1
}

fn is_alive(id: u64) -> bool {
    id == AMBIENT || id.is_multiple_of(SLOTS) || LIVE[(id % SLOTS) as usize].load(Relaxed) == id
}

/// The transforms that a value depends on.
#[derive(Clone, Default, PartialEq)]
pub(crate) enum Deps {
    #[default]
    None,
    One(u64),
    Many(Box<[u64]>),
}

impl Deps {
    #[cfg(test)]
    pub fn of(level: u64) -> Deps {
        Deps::One(level)
    }

    #[inline]
    pub fn ids(&self) -> &[u64] {
        match self {
            Deps::None => &[],
            Deps::One(id) => std::slice::from_ref(id),
            Deps::Many(ids) => ids,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        matches!(self, Deps::None)
    }

    #[inline]
    pub fn contains(&self, level: u64) -> bool {
        self.ids().contains(&level)
    }

    /// Adds those of `other` that a result computed inside `frame` still depends on: transforms newer than the frame,
    /// alive and not suspended.
    #[inline]
    pub fn join(&mut self, other: &Deps, frame: u64) {
        for &id in other.ids() {
            if id > frame && !self.contains(id) && is_alive(id) && !is_suspended(id) {
                self.insert(id);
            }
        }
    }

    pub fn insert(&mut self, level: u64) {
        if !self.contains(level) {
            *self = match self.ids() {
                [] => Deps::One(level),
                ids => Deps::Many(ids.iter().copied().chain([level]).collect()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_transform_is_forgotten() {
        let level = Level::new();
        let of = Deps::of(level.id());
        let mut deps = Deps::default();
        deps.join(&of, 0);
        assert!(deps.contains(level.id()));
        drop(level);
        let mut deps = Deps::default();
        deps.join(&of, 0);
        assert!(deps.is_empty());
    }

    #[test]
    fn more_transforms_than_slots() {
        let all: Vec<Level> = (0..3000).map(|_| Level::new()).collect();
        assert!(all.iter().all(|l| is_alive(l.id())));
        assert!(all.windows(2).all(|w| w[0].id() < w[1].id()));
    }
}
