// Every operation of Java's Admin on groups, one line for the outcome of each.
//
//     java -cp ... GroupAdmin HOST:PORT TOPIC classic|consumer
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

public final class GroupAdmin {
    private static Admin admin;
    private static String topic;

    public static void main(String[] arguments) throws Exception {
        topic = arguments[1];
        String protocol = arguments[2];
        String group = "admin-" + protocol;
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("request.timeout.ms", "10000");
        properties.put("default.api.timeout.ms", "15000");
        admin = Admin.create(properties);
        TopicPartition first = new TopicPartition(topic, 0);
        TopicPartition second = new TopicPartition(topic, 1);
        try (KafkaConsumer<byte[], byte[]> consumer = member(arguments[0], group, protocol, "pod-1")) {
            consumer.subscribe(List.of(topic));
            while (consumer.assignment().size() < 2) {
                consumer.poll(Duration.ofMillis(100));
            }
            consumer.commitSync(Map.of(first, new OffsetAndMetadata(3, "m"), second, new OffsetAndMetadata(4)));
            say("list groups", () -> groups(group));
            say("describe", () -> described(group));
            say("list offsets", () -> offsets(group));
            say("delete a group with a member", () -> deleted(group));
            say("delete offsets that are read", () -> offsetsDeleted(group, first));
            say("alter offsets of a group with a member", () -> altered(group, first, 7));
            say("remove an unknown instance", () -> removed(group, "nobody"));
            say("remove an instance", () -> removed(group, "pod-1"));
        } catch (Exception error) {
            System.out.println("close: " + name(error));
        }
        try (KafkaConsumer<byte[], byte[]> consumer = member(arguments[0], group + "-2", protocol, null)) {
            consumer.subscribe(List.of(topic));
            while (consumer.assignment().size() < 2) {
                consumer.poll(Duration.ofMillis(100));
            }
            say("remove all members", () -> {
                admin.removeMembersFromConsumerGroup(group + "-2", new RemoveMembersFromConsumerGroupOptions()).all().get();
                return "done";
            });
        } catch (Exception error) {
            System.out.println("close: " + name(error));
        }
        long until = System.currentTimeMillis() + 15_000;
        while (!described(group).contains("EMPTY") && System.currentTimeMillis() < until) {
            Thread.sleep(100);
        }
        say("describe without members", () -> described(group));
        say("alter offsets", () -> altered(group, first, 7));
        say("alter offsets of a partition that does not exist", () -> altered(group, new TopicPartition(topic, 99), 7));
        say("alter offsets of a new group", () -> altered(group + "-new", second, 1));
        say("list offsets", () -> offsets(group));
        say("delete offsets", () -> offsetsDeleted(group, first));
        say("delete offsets again", () -> offsetsDeleted(group, first));
        say("delete offsets of a topic that does not exist", () -> offsetsDeleted(group, new TopicPartition("none", 0)));
        say("list offsets", () -> offsets(group));
        say("list offsets of an unknown group", () -> offsets("nobody"));
        say("delete offsets of an unknown group", () -> offsetsDeleted("nobody", first));
        say("remove from an unknown group", () -> removed("nobody", "pod-1"));
        say("delete an unknown group", () -> deleted("nobody"));
        say("delete a group", () -> deleted(group));
        say("delete a group", () -> deleted(group + "-new"));
        say("describe a deleted group", () -> described(group));
        say("list groups", () -> groups(group));
        admin.close(Duration.ofSeconds(2));
    }

    private static KafkaConsumer<byte[], byte[]> member(String bootstrap, String group, String protocol, String instance) {
        Properties properties = new Properties();
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", group);
        properties.put("group.protocol", protocol);
        properties.put("client.id", "java");
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("key.deserializer", bytes);
        properties.put("value.deserializer", bytes);
        if (instance != null) {
            properties.put("group.instance.id", instance);
        }
        return new KafkaConsumer<>(properties);
    }

    private static String groups(String prefix) throws Exception {
        Set<String> found = new TreeSet<>();
        for (GroupListing one : admin.listGroups().all().get()) {
            if (one.groupId().startsWith(prefix)) {
                found.add(one.groupId() + " " + one.type().orElse(null) + " " + one.protocol() + " "
                        + one.groupState().orElse(null));
            }
        }
        return found.toString();
    }

    private static String described(String group) throws Exception {
        ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        Set<String> members = new TreeSet<>();
        found.members().forEach(one -> members.add(one.clientId() + " " + one.groupInstanceId().orElse(null) + " "
                + new TreeSet<>(one.assignment().topicPartitions().stream().map(String::valueOf).toList())));
        return found.groupState() + " " + found.type() + " " + found.partitionAssignor() + " " + members;
    }

    private static String offsets(String group) throws Exception {
        Map<String, String> found = new TreeMap<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, offset) ->
                found.put(partition.toString(), offset == null ? null : offset.offset() + offset.metadata()));
        return found.toString();
    }

    private static String deleted(String group) throws Exception {
        admin.deleteConsumerGroups(List.of(group)).all().get();
        return "done";
    }

    private static String offsetsDeleted(String group, TopicPartition partition) throws Exception {
        admin.deleteConsumerGroupOffsets(group, Set.of(partition)).partitionResult(partition).get();
        return "done";
    }

    private static String altered(String group, TopicPartition partition, long offset) throws Exception {
        admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(offset)))
                .partitionResult(partition).get();
        return "done";
    }

    private static String removed(String group, String instance) throws Exception {
        MemberToRemove member = new MemberToRemove(instance);
        Collection<MemberToRemove> members = List.of(member);
        admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(members))
                .memberResult(member).get();
        return "done";
    }

    private static void say(String what, Callable<String> operation) {
        String outcome;
        try {
            outcome = operation.call();
        } catch (Exception error) {
            outcome = name(error);
        }
        System.out.println(what + ": " + outcome);
        System.out.flush();
    }

    private static String name(Exception error) {
        Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
        return cause.getClass().getSimpleName();
    }
}
