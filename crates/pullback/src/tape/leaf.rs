//! What a tensor that someone watches gathers: its gradient and its hooks.

use crate::Tensor;
use crate::error::{Result, err};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

type HookFn = Arc<dyn Fn(&Tensor) -> Option<Tensor> + Send + Sync>;

#[derive(Default)]
pub(crate) struct Leaf {
    grad: Mutex<Option<Tensor>>,
    hooks: Mutex<Vec<(u64, HookFn)>>,
    /// Gathers the gradient although it is not a leaf.
    retains: AtomicBool,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    // A poisoned lock means that a hook panicked; what it guards is still whole.
    m.lock().unwrap_or_else(|e| e.into_inner())
}

impl Leaf {
    pub fn grad(&self) -> Option<Tensor> {
        lock(&self.grad).clone()
    }

    pub fn retain(&self) {
        self.retains.store(true, Relaxed);
    }

    pub fn retains(&self) -> bool {
        self.retains.load(Relaxed)
    }

    pub fn clear(&self) {
        *lock(&self.grad) = None;
    }

    pub fn accumulate(&self, g: &Tensor) {
        let mut slot = lock(&self.grad);
        match &mut *slot {
            Some(sum) => *sum += g,
            None => *slot = Some(g.clone()),
        }
    }

    /// Passes the cotangent through the hooks, in the order they were added.
    pub fn run_hooks(&self, mut g: Tensor) -> Result<Tensor> {
        let hooks = lock(&self.hooks).clone();
        for (_, hook) in hooks {
            if let Some(new) = hook(&g) {
                if new.shape() != g.shape() || new.dtype() != g.dtype() {
                    return Err(err!(
                        Gradient,
                        "a gradient hook returned {} {:?} for a gradient of {} {:?}; it must keep shape and dtype",
                        new.dtype(),
                        new.shape(),
                        g.dtype(),
                        g.shape()
                    ));
                }
                g = new;
            }
        }
        Ok(g)
    }

    pub fn add_hook(self: &Arc<Self>, f: HookFn) -> Hook {
        let mut hooks = lock(&self.hooks);
        let key = hooks.last().map_or(0, |(k, _)| k + 1);
        hooks.push((key, f));
        Hook { leaf: self.clone(), key }
    }
}

/// A gradient hook that was added with [`Tensor::on_grad`]; it stays until [`Hook::remove`].
pub struct Hook {
    leaf: Arc<Leaf>,
    key: u64,
}

impl Hook {
    /// Takes the hook off again.
    pub fn remove(self) {
        lock(&self.leaf.hooks).retain(|(k, _)| *k != self.key);
    }
}
