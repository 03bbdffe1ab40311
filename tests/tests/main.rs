//! End-to-end tests: the real binary against real MongoDB and real Kafka.

mod architecture;
mod services;
mod shared;
mod spine;
