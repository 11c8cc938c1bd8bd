"""The classic protocol (JoinGroup, SyncGroup, Heartbeat): coordinator and member as machines without I/O."""
