import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
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
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * Times Kafka's own assignors on groups that are built here, in Java, so that no conversion is measured.
 * The groups are those of benchmarks/groups.py: same names, same subscriptions, same racks.
 */
public final class AssignorBench {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final int topics;
    private final int partitions;
    private final String shape;
    private final boolean racks;
    private final List<String> topicNames = new ArrayList<>();
    private final Map<String, Uuid> topicIds = new HashMap<>();

    private AssignorBench(int topics, int partitions, String shape, boolean racks) {
        this.topics = topics;
        this.partitions = partitions;
        this.shape = shape;
        this.racks = racks;
        for (int topic = 0; topic < topics; topic++) {
            topicNames.add("topic" + topic);
        }
        // Numbered in the order of their names, as a group described without ids is.
        List<String> sorted = new ArrayList<>(topicNames);
        Collections.sort(sorted);
        for (int i = 0; i < sorted.size(); i++) {
            topicIds.put(sorted.get(i), new Uuid(0, i + 1));
        }
    }

    /** CPU nanoseconds of every timed call. The warm-up is bounded by calls and by time, whichever ends first. */
    public static long[] time(String assignor, int members, int topics, int partitions, String shape, boolean racks,
                              String change, int calls, long warmupMillis) {
        AssignorBench bench = new AssignorBench(topics, partitions, shape, racks);
        return assignor.startsWith("consumer/")
            ? bench.timeServer(assignor, members, change, calls, warmupMillis)
            : bench.timeClient(assignor, members, change, calls, warmupMillis);
    }

    private List<String> subscription(int member, int members) {
        if (shape.equals("equal")) {
            return topicNames;
        }
        int bucket = (int) ((long) member * 5 / members);
        List<String> mine = topicNames.subList(bucket * topics / 5, (bucket + 1) * topics / 5);
        if (shape.equals("buckets")) {
            return mine;
        }
        int next = (bucket + 1) % 5;
        List<String> both = new ArrayList<>(mine);
        both.addAll(topicNames.subList(next * topics / 5, (next + 1) * topics / 5));
        return both;
    }

    private static String rackOf(int member) {
        return "rack" + member % 3;
    }

    private long[] timeClient(String name, int members, String change, int calls, long warmupMillis) {
        Cluster cluster = cluster();
        Map<String, Subscription> group = clientGroup(name, members, null);
        if (!change.equals("full")) {
            int before = change.equals("join") ? members - 1 : members + 1;
            Map<String, Subscription> earlier = clientGroup(name, before, null);
            Map<String, Assignment> held =
                clientAssignor(name).assign(cluster, new GroupSubscription(earlier)).groupAssignment();
            group = clientGroup(name, members, held);
        }
        GroupSubscription subscriptions = new GroupSubscription(group);
        List<Subscription> all = new ArrayList<>(group.values());
        return measure(calls, warmupMillis, () -> {
            for (Subscription one : all) {
                ByteBuffer data = one.userData();
                if (data != null) {
                    data.rewind();
                }
            }
            return clientAssignor(name);
        }, assignor -> assignor.assign(cluster, subscriptions));
    }

    private Map<String, Subscription> clientGroup(String name, int members, Map<String, Assignment> held) {
        Map<String, Subscription> group = new HashMap<>();
        for (int i = 0; i < members; i++) {
            String member = "member" + i;
            List<String> subscribed = subscription(i, members);
            Assignment mine = held == null ? null : held.get(member);
            ByteBuffer userData = null;
            List<TopicPartition> owned = List.of();
            if (mine != null) {
                owned = mine.partitions();
                if (name.equals("classic/sticky")) {
                    StickyAssignor carrier = new StickyAssignor();
                    carrier.onAssignment(mine, new ConsumerGroupMetadata("g", 1, member, Optional.empty()));
                    userData = carrier.subscriptionUserData(new HashSet<>(subscribed));
                }
            }
            Optional<String> rack = racks ? Optional.of(rackOf(i)) : Optional.empty();
            group.put(member, new Subscription(subscribed, userData, owned, mine == null ? -1 : 1, rack));
        }
        return group;
    }

    private static ConsumerPartitionAssignor clientAssignor(String name) {
        switch (name) {
            case "classic/range": return new RangeAssignor();
            case "classic/roundrobin": return new RoundRobinAssignor();
            case "classic/sticky": return new StickyAssignor();
            case "classic/cooperative-sticky": return new CooperativeStickyAssignor();
            default: throw new IllegalArgumentException(name);
        }
    }

    private Cluster cluster() {
        Node[] nodes = new Node[3];
        for (int i = 0; i < 3; i++) {
            nodes[i] = new Node(i, "host" + i, 9092, racks ? "rack" + i : null);
        }
        List<PartitionInfo> infos = new ArrayList<>();
        for (String topic : topicNames) {
            for (int p = 0; p < partitions; p++) {
                Node[] replicas = {nodes[p % 3], nodes[(p + 1) % 3]};
                infos.add(new PartitionInfo(topic, p, replicas[0], replicas, replicas));
            }
        }
        return new Cluster("bench", Arrays.asList(nodes), infos, Set.of(), Set.of());
    }

    private long[] timeServer(String name, int members, String change, int calls, long warmupMillis) {
        Map<Uuid, Integer> counts = new HashMap<>();
        for (Uuid id : topicIds.values()) {
            counts.put(id, partitions);
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid id) {
                return counts.getOrDefault(id, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid id, int partition) {
                return Set.of();
            }
        };
        GroupSpecImpl spec = serverGroup(members, null);
        if (!change.equals("full")) {
            int before = change.equals("join") ? members - 1 : members + 1;
            GroupAssignment held = serverAssignor(name).assign(serverGroup(before, null), describer);
            spec = serverGroup(members, held);
        }
        GroupSpecImpl group = spec;
        return measure(calls, warmupMillis, () -> serverAssignor(name), assignor -> assignor.assign(group, describer));
    }

    private GroupSpecImpl serverGroup(int members, GroupAssignment held) {
        Map<String, MemberSubscriptionAndAssignmentImpl> group = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        for (int i = 0; i < members; i++) {
            String member = "member" + i;
            Map<Uuid, Set<Integer>> mine = new HashMap<>();
            if (held != null && held.members().containsKey(member)) {
                held.members().get(member).partitions().forEach((id, ps) -> mine.put(id, new HashSet<>(ps)));
            }
            mine.forEach((id, ps) -> {
                Map<Integer, String> owners = inverted.computeIfAbsent(id, unused -> new HashMap<>());
                ps.forEach(p -> owners.put(p, member));
            });
            Set<Uuid> subscribed = new HashSet<>();
            subscription(i, members).forEach(topic -> subscribed.add(topicIds.get(topic)));
            group.put(member, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.empty(), subscribed,
                new org.apache.kafka.coordinator.group.modern.Assignment(mine)));
        }
        SubscriptionType type = shape.equals("equal") ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return new GroupSpecImpl(group, type, inverted);
    }

    private static PartitionAssignor serverAssignor(String name) {
        switch (name) {
            case "consumer/range": return new org.apache.kafka.coordinator.group.assignor.RangeAssignor();
            case "consumer/uniform": return new UniformAssignor();
            default: throw new IllegalArgumentException(name);
        }
    }

    private interface Fresh<T> {
        T make();
    }

    private interface Call<T> {
        Object run(T assignor);
    }

    private static <T> long[] measure(int calls, long warmupMillis, Fresh<T> fresh, Call<T> call) {
        long until = System.nanoTime() + warmupMillis * 1_000_000;
        int warm = 0;
        do {
            call.run(fresh.make());
            warm++;
        } while (warm < 500 && System.nanoTime() < until);
        long[] nanos = new long[calls];
        int done = 0;
        long enough = System.nanoTime() + 5_000_000_000L;
        for (int i = 0; i < calls && (i == 0 || System.nanoTime() < enough); i++) {
            T assignor = fresh.make();
            long start = THREADS.getCurrentThreadCpuTime();
            Object answer = call.run(assignor);
            nanos[i] = THREADS.getCurrentThreadCpuTime() - start;
            if (answer == null) {
                throw new IllegalStateException("no answer");
            }
            done++;
        }
        return Arrays.copyOf(nanos, done);
    }
}
