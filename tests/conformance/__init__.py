"""Our answers beside those of Apache Kafka itself: its classes in this process, its brokers in theirs."""
