// Java's own consumers for tests: one for each GROUP=STRATEGY, a line of JSON whenever what one of them owns changes.
//
//     java -cp ... Members HOST:PORT TOPIC SESSION_MS GROUP=classic/range GROUP=consumer/uniform ...
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

public final class Members {
    private static final Duration A_WHILE = Duration.ofMillis(20);

    public static void main(String[] arguments) throws Exception {
        AtomicBoolean stopping = new AtomicBoolean();
        List<Member> members = new ArrayList<>();
        for (int i = 3; i < arguments.length; i++) {
            String[] parts = arguments[i].split("=", 2);
            members.add(new Member(arguments[0], arguments[1], arguments[2], parts[0], parts[1]));
        }
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping.set(true);
            try {
                main.join(20_000);
            } catch (InterruptedException ignored) {
                Thread.currentThread().interrupt();
            }
        }));
        while (!stopping.get()) {
            for (Member member : members) {
                member.read += member.consumer.poll(A_WHILE).count();
                member.tellIfReadOn();
            }
        }
        members.forEach(member -> member.consumer.close());
    }

    private static final class Member implements ConsumerRebalanceListener {
        private final String group;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final TreeSet<Integer> owned = new TreeSet<>();
        private long read;
        private long told;

        Member(String bootstrap, String topic, String sessionMs, String group, String strategy) {
            this.group = group;
            consumer = new KafkaConsumer<>(properties(bootstrap, sessionMs, group, strategy));
            consumer.subscribe(List.of(topic), this);
        }

        private static Properties properties(String bootstrap, String sessionMs, String group, String strategy) {
            Properties properties = new Properties();
            String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
            properties.put("bootstrap.servers", bootstrap);
            properties.put("group.id", group);
            properties.put("client.id", "java");
            properties.put("key.deserializer", bytes);
            properties.put("value.deserializer", bytes);
            properties.put("auto.offset.reset", "earliest");
            properties.put("auto.commit.interval.ms", "500");
            properties.put("metadata.max.age.ms", "2000");
            String[] parts = strategy.split("/", 2);
            properties.put("group.protocol", parts[0]);
            if (parts[0].equals("consumer")) {
                properties.put("group.remote.assignor", parts[1]);
            } else {
                String name = parts[1].equals("range") ? "RangeAssignor" : "CooperativeStickyAssignor";
                properties.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + name);
                properties.put("session.timeout.ms", sessionMs);
                properties.put("heartbeat.interval.ms", "300");
            }
            return properties;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> owned.add(partition.partition()));
            tell();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> owned.remove(partition.partition()));
            tell();
        }

        private void tellIfReadOn() {
            if (read > told) {
                tell();
            }
        }

        private void tell() {
            told = read;
            String numbers = owned.stream().map(String::valueOf).collect(Collectors.joining(","));
            System.out.println("{\"group\":\"" + group + "\",\"owned\":[" + numbers + "],\"read\":" + read + "}");
            System.out.flush();
        }
    }
}
