//! The compiled side: whole functions and training steps as static graphs.

mod adam;
mod convolutional;
mod elementwise;
mod perceptron;
mod transformer;

use crate::task::Task;

pub fn tasks() -> Vec<Task> {
    [elementwise::tasks(), perceptron::tasks(), convolutional::tasks(), transformer::tasks()]
        .into_iter()
        .flatten()
        .collect()
}
