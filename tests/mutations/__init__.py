"""Deliberate mistakes in the compiler, and a runner that asks whether the tests notice them."""
