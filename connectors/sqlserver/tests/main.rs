//! The connector against the emulator.
