import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** BOOTSTRAP TOPIC[,TOPIC...] GROUP PROTOCOL RECORDS MS [SETTING=VALUE ...]: works off batches of so many records, each in so many
 *  milliseconds, and tells, a line each, of every batch and every callback as it begins. It begins itself once it has
 *  said that it is ready and something was written to its standard input. A c there closes its consumer; and when standard
 *  input is closed, it ends at once. */
public class SlowApplication {
    /** Whoever started this may be gone without having stopped it. */
    private static void obey(KafkaConsumer<byte[], byte[]> consumer) {
        try {
            int order;
            while ((order = System.in.read()) >= 0) {
                if (order == 'c') {
                    consumer.wakeup();
                }
            }
        } catch (java.io.IOException gone) {
            // as good as closed
        }
        Runtime.getRuntime().halt(0);
    }

    public static void main(String[] given) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[0]);
        settings.put("group.id", given[2]);
        if (given[3].equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else {
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + given[3]);
            settings.put("heartbeat.interval.ms", "500");
        }
        settings.put("auto.offset.reset", "earliest");
        settings.put("max.poll.records", given[4]);
        for (int i = 6; i < given.length; i++) {
            settings.put(given[i].split("=")[0], given[i].split("=")[1]);
        }
        Object revokedMs = settings.remove("revoked.ms"); // ours, not Kafka's: how long it takes to give up partitions
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings, bytes, bytes)) {
            System.out.println("ready");
            System.in.read();
            Thread orders = new Thread(() -> obey(consumer));
            orders.setDaemon(true);
            orders.start();
            consumer.subscribe(List.of(given[1].split(",")), new ConsumerRebalanceListener() {
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    System.out.println("revoked " + partitions.size());
                    try {
                        Thread.sleep(revokedMs == null ? 0 : Long.parseLong((String) revokedMs));
                    } catch (InterruptedException never) {
                        throw new IllegalStateException(never);
                    }
                }

                public void onPartitionsLost(Collection<TopicPartition> partitions) {
                    System.out.println("lost " + partitions.size());
                }

                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    System.out.println("assigned " + partitions.size());
                }
            });
            while (true) {
                ConsumerRecords<byte[], byte[]> batch = consumer.poll(Duration.ofMillis(200));
                if (!batch.isEmpty()) {
                    System.out.println("batch " + batch.count());
                    Thread.sleep(batch.count() * Long.parseLong(given[5]));
                }
            }
        } catch (WakeupException ordered) {
            System.out.println("closed");
        }
    }
}
