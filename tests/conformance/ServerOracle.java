import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * The broker's assignors (KIP-848), many groups per call; the counterpart of Oracle.java.
 * Collections are built with the constructors that the broker uses: the size of their tables is part of the input.
 */
public final class ServerOracle {
    private final String[] strings;
    private final Map<String, Integer> numbers = new HashMap<>();
    private final int[] in;
    private int at;
    private int[] out = new int[1 << 16];
    private int written;
    private final List<String> exceptions = new ArrayList<>();

    private final Map<String, Uuid> ids = new HashMap<>();
    private final Map<Uuid, String> names = new HashMap<>();
    private final Map<Uuid, Integer> counts = new HashMap<>();

    public ServerOracle(byte[] text, int[] in) {
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

    public int[] answers() {
        int groups = next();
        for (int i = 0; i < groups; i++) {
            PartitionAssignor assignor = next() == 0
                ? new UniformAssignor() : new org.apache.kafka.coordinator.group.assignor.RangeAssignor();
            readTopics();
            GroupSpecImpl group = readGroup();
            try {
                write(group.memberIds().isEmpty() ? Map.of() : assignor.assign(group, describer()).members());
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

    private void readTopics() {
        ids.clear();
        names.clear();
        counts.clear();
        int topics = next();
        for (int t = 0; t < topics; t++) {
            String topic = strings[next()];
            int partitions = next();
            Uuid id = new Uuid(nextLong(), nextLong());
            ids.put(topic, id);
            names.put(id, topic);
            counts.put(id, partitions);
        }
    }

    private GroupSpecImpl readGroup() {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        ConsumerGroup group = new ConsumerGroup(new LogContext(), new SnapshotRegistry(new LogContext()), "g");
        TopicIds.CachedTopicResolver resolver = new TopicIds.CachedTopicResolver(image());
        Set<Set<String>> subscriptions = new HashSet<>();
        int count = next();
        for (int i = 0; i < count; i++) {
            String id = strings[next()];
            int instance = next();
            List<String> topics = new ArrayList<>();
            for (int t = next(); t > 0; t--)
                topics.add(strings[next()]);
            Set<String> subscribed = new HashSet<>(topics);
            subscriptions.add(subscribed);
            Map<Uuid, Set<Integer>> owned = new HashMap<>();
            for (int t = next(); t > 0; t--) {
                String topic = strings[next()];
                List<Integer> partitions = new ArrayList<>();
                for (int p = next(); p > 0; p--)
                    partitions.add(next());
                // What is held of a topic that no longer exists is known to the broker by an id without a name.
                Uuid topicId = ids.getOrDefault(topic, new Uuid(-7, topic.hashCode()));
                owned.put(topicId, new HashSet<>(partitions));
            }
            Assignment assignment = new Assignment(owned);
            group.updateTargetAssignment(id, assignment);
            members.put(id, new MemberSubscriptionAndAssignmentImpl(Optional.empty(),
                instance < 0 ? Optional.empty() : Optional.of(strings[instance]),
                new TopicIds(subscribed, resolver), assignment));
        }
        SubscriptionType type = subscriptions.size() <= 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return new GroupSpecImpl(members, type, group.invertedTargetAssignment());
    }

    private SubscribedTopicDescriber describer() {
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid id) {
                return counts.getOrDefault(id, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid id, int partition) {
                return Set.of();
            }
        };
    }

    /** A metadata image that knows names and ids, which is all that TopicIds asks. */
    private CoordinatorMetadataImage image() {
        return (CoordinatorMetadataImage) java.lang.reflect.Proxy.newProxyInstance(
            ServerOracle.class.getClassLoader(), new Class<?>[] {CoordinatorMetadataImage.class},
            (proxy, method, arguments) -> {
                if (!method.getName().equals("topicMetadata"))
                    throw new UnsupportedOperationException(method.getName());
                Object key = arguments[0];
                String name = key instanceof String ? (String) key : names.get(key);
                Uuid id = name == null ? null : ids.get(name);
                return id == null ? Optional.empty() : Optional.of(topicMetadata(name, id));
            });
    }

    private static CoordinatorMetadataImage.TopicMetadata topicMetadata(String name, Uuid id) {
        return (CoordinatorMetadataImage.TopicMetadata) java.lang.reflect.Proxy.newProxyInstance(
            ServerOracle.class.getClassLoader(), new Class<?>[] {CoordinatorMetadataImage.TopicMetadata.class},
            (proxy, method, arguments) -> {
                switch (method.getName()) {
                    case "name": return name;
                    case "id": return id;
                    default: throw new UnsupportedOperationException(method.getName());
                }
            });
    }

    private void write(Map<String, ? extends MemberAssignment> assignments) {
        put(assignments.size());
        assignments.forEach((id, assignment) -> {
            put(numbers.get(id));
            int size = 0;
            for (Set<Integer> partitions : assignment.partitions().values())
                size += partitions.size();
            put(size);
            assignment.partitions().forEach((topic, partitions) -> {
                for (int partition : partitions) {
                    put(numbers.get(names.get(topic)));
                    put(partition);
                }
            });
        });
    }

    private int next() {
        return in[at++];
    }

    private long nextLong() {
        return ((long) next() << 32) | (next() & 0xFFFFFFFFL);
    }

    private void put(int value) {
        if (written == out.length)
            out = java.util.Arrays.copyOf(out, 2 * written);
        out[written++] = value;
    }
}
