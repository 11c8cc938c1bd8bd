import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own assignors, many groups per call: a call from Python costs microseconds, and a group is hundreds of objects.
 * Groups come in as ints with one table of strings (java_oracle.py writes them), answers go back the same way.
 */
public final class Oracle {
    private final String[] strings;
    private final Map<String, Integer> numbers = new HashMap<>();
    private final int[] in;
    private int at;
    private int[] out = new int[1 << 16];
    private int written;
    private final List<String> exceptions = new ArrayList<>();

    static {
        // slf4j says on stderr that it has no binding; that is on purpose here.
        java.io.PrintStream stderr = System.err;
        System.setErr(new java.io.PrintStream(java.io.OutputStream.nullOutputStream()));
        org.slf4j.LoggerFactory.getLogger(Oracle.class);
        System.setErr(stderr);
    }

    public Oracle(byte[] text, int[] in) {
        this.in = in;
        strings = new String[next()];
        int begin = 0;
        for (int i = 0; i < strings.length; i++) {
            int length = next();
            strings[i] = new String(text, begin, length, StandardCharsets.UTF_8);
            numbers.put(strings[i], i);
            begin += length;
        }
    }

    /** Per group: -1 and the number of an exception's name, or the members with their partitions. */
    public int[] answers() {
        int groups = next();
        ConsumerPartitionAssignor assignor = null;
        for (int i = 0; i < groups; i++) {
            int kind = next();
            boolean fresh = next() == 1;
            assignor = fresh || assignor == null ? newAssignor(kind) : assignor;
            Cluster cluster = readTopics();
            Map<String, Subscription> members = readMembers(kind);
            try {
                write(assignor.assign(cluster, new GroupSubscription(members)).groupAssignment());
            } catch (RuntimeException e) {
                put(-1);
                put(exceptions.size());
                exceptions.add(e.getClass().getSimpleName());
            }
        }
        return java.util.Arrays.copyOf(out, written);
    }

    public String[] exceptions() {
        return exceptions.toArray(new String[0]);
    }

    /** CPU nanoseconds of the calls alone, for the first group; warmed up for so many milliseconds before. */
    public long[] times(long warmUpMillis, int repetitions) {
        int start = at + 1;
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long[] times = new long[repetitions];
        long warmUntil = System.currentTimeMillis() + warmUpMillis;
        for (int done = 0; done < repetitions; ) {
            at = start;
            int kind = next();
            next();
            Cluster cluster = readTopics();
            GroupSubscription members = new GroupSubscription(readMembers(kind));
            ConsumerPartitionAssignor assignor = newAssignor(kind);
            long before = threads.getCurrentThreadCpuTime();
            assignor.assign(cluster, members);
            long taken = threads.getCurrentThreadCpuTime() - before;
            if (System.currentTimeMillis() >= warmUntil)
                times[done++] = taken;
        }
        return times;
    }

    private static ConsumerPartitionAssignor newAssignor(int kind) {
        switch (kind) {
            case 0: return new RangeAssignor();
            case 1: return new RoundRobinAssignor();
            case 2: return new StickyAssignor();
            case 3: return new CooperativeStickyAssignor();
            default: throw new IllegalArgumentException("no assignor " + kind);
        }
    }

    private Cluster readTopics() {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> infos = new ArrayList<>();
        int topics = next();
        for (int t = 0; t < topics; t++) {
            String topic = strings[next()];
            int partitions = next();
            boolean hasRacks = next() == 1;
            for (int p = 0; p < partitions; p++) {
                Node[] replicas = new Node[hasRacks ? next() : 0];
                for (int r = 0; r < replicas.length; r++)
                    replicas[r] = nodes.computeIfAbsent(strings[next()], rack -> new Node(nodes.size(), "h", 9092, rack));
                infos.add(new PartitionInfo(topic, p, Node.noNode(), replicas, replicas));
            }
        }
        return new Cluster("c", nodes.values(), infos, Collections.emptySet(), Collections.emptySet());
    }

    /** Into a HashMap in order of arrival, as the leader fills it. */
    private Map<String, Subscription> readMembers(int kind) {
        Map<String, Subscription> members = new HashMap<>();
        int count = next();
        for (int i = 0; i < count; i++) {
            String id = strings[next()];
            int instance = next();
            int rack = next();
            List<String> topics = new ArrayList<>();
            for (int t = next(); t > 0; t--)
                topics.add(strings[next()]);
            int generation = next();
            boolean hasClaimGeneration = next() == 1;
            int claimGeneration = next();
            List<TopicPartition> owned = new ArrayList<>();
            Map<String, int[]> ownedByTopic = new LinkedHashMap<>();
            for (int t = next(); t > 0; t--) {
                String topic = strings[next()];
                int[] partitions = new int[next()];
                for (int p = 0; p < partitions.length; p++) {
                    partitions[p] = next();
                    owned.add(new TopicPartition(topic, partitions[p]));
                }
                ownedByTopic.put(topic, partitions);
            }
            ByteBuffer userData = null;
            if (kind == 2)
                userData = stickyUserData(ownedByTopic, generation >= 0 || hasClaimGeneration, hasClaimGeneration ? claimGeneration : generation);
            else if (kind == 3 && hasClaimGeneration)
                userData = ByteBuffer.allocate(4).putInt(0, claimGeneration);
            Subscription subscription = new Subscription(topics, userData, kind == 3 ? owned : Collections.emptyList(),
                generation, rack < 0 ? Optional.empty() : Optional.of(strings[rack]));
            subscription.setGroupInstanceId(instance < 0 ? Optional.empty() : Optional.of(strings[instance]));
            members.put(id, subscription);
        }
        return members;
    }

    /** Version 1, or version 0 for a claim without a generation. */
    private static ByteBuffer stickyUserData(Map<String, int[]> owned, boolean hasGeneration, int generation) {
        if (owned.isEmpty() && !hasGeneration)
            return null;
        int size = 8;
        for (Map.Entry<String, int[]> entry : owned.entrySet())
            size += 6 + entry.getKey().getBytes(StandardCharsets.UTF_8).length + 4 * entry.getValue().length;
        ByteBuffer buffer = ByteBuffer.allocate(size);
        buffer.putInt(owned.size());
        owned.forEach((topic, partitions) -> {
            byte[] name = topic.getBytes(StandardCharsets.UTF_8);
            buffer.putShort((short) name.length).put(name).putInt(partitions.length);
            for (int partition : partitions)
                buffer.putInt(partition);
        });
        if (hasGeneration)
            buffer.putInt(generation);
        buffer.flip();
        return buffer;
    }

    private void write(Map<String, Assignment> assignments) {
        put(assignments.size());
        assignments.forEach((id, assignment) -> {
            put(numbers.get(id));
            put(assignment.partitions().size());
            for (TopicPartition partition : assignment.partitions()) {
                put(numbers.get(partition.topic()));
                put(partition.partition());
            }
        });
    }

    private int next() {
        return in[at++];
    }

    private void put(int value) {
        if (written == out.length)
            out = java.util.Arrays.copyOf(out, 2 * written);
        out[written++] = value;
    }
}
