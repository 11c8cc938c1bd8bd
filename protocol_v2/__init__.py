"""KIP-848: coordinator and member reconciliation as machines without I/O."""
