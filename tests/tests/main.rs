//! End-to-end tests: the real binary against real MongoDB and real Kafka.

mod architecture;
mod avro;
mod dead_letters;
mod doors;
mod fuzz;
mod golden;
mod health;
mod lifecycle;
mod metrics;
mod mongodb;
mod offsets;
mod plugins;
mod program;
mod reference;
mod refusals;
mod repstance;
mod rows;
mod secrets;
mod services;
mod sharded;
mod shared;
mod signals;
mod spine;
mod spread;
mod stopping;
mod transactions;
