package org.apache.kafka.server;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.ImplicitLinkedHashCollection;

/**
 * Kafka's own cache of fetch sessions, driven line by line from standard input. It stands in Kafka's package because
 * what it calls is package-private. After each line it prints the answer and, sorted, the ids that are there.
 *
 *   new SLOTS SHARDS EVICTION_MS        a new cache, as BrokerServer builds it
 *   create NOW PRIVILEGED SIZE          the id, or 0
 *   touch ID NOW SIZE                   1, or 0 for FETCH_SESSION_ID_NOT_FOUND
 *   close ID                            1, or 0
 */
public final class FetchSessionOracle {
    private static final Uuid TOPIC = new Uuid(1, 1);
    private static FetchSession.FetchSessionCache cache;
    private static final TreeSet<Integer> live = new TreeSet<>();

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.setLength(0);
            out.append(answer(line.split(" ")));
            live.removeIf(id -> cache.getCacheShard(id).get(id).isEmpty());
            for (int id : live)
                out.append(' ').append(id);
            System.out.println(out);
        }
    }

    private static int answer(String[] words) {
        switch (words[0]) {
            case "new":
                build(Integer.parseInt(words[1]), Integer.parseInt(words[2]), Long.parseLong(words[3]));
                return 0;
            case "create":
                int size = Integer.parseInt(words[3]);
                int id = cache.getNextCacheShard().maybeCreateSession(Long.parseLong(words[1]),
                    Boolean.parseBoolean(words[2]), size, true, () -> partitions(size));
                if (id != 0)
                    live.add(id);
                return id;
            case "touch":
                return touch(Integer.parseInt(words[1]), Long.parseLong(words[2]), Integer.parseInt(words[3]));
            default:
                int closed = Integer.parseInt(words[1]);
                return cache.getCacheShard(closed).remove(closed).isPresent() ? 1 : 0;
        }
    }

    private static void build(int slots, int shards, long evictionMs) {
        int range = Integer.MAX_VALUE / shards;
        List<FetchSessionCacheShard> parts = new ArrayList<>();
        for (int number = 0; number < shards; number++)
            parts.add(new FetchSessionCacheShard(slots / shards, evictionMs, range, number));
        cache = new FetchSession.FetchSessionCache(parts);
        FetchSession.FetchSessionCache.COUNTER.set(0);
        live.clear();
    }

    /** As FetchManager does it, the partitions of the session being what a fetch would have made them. */
    private static int touch(int id, long now, int size) {
        FetchSessionCacheShard shard = cache.getCacheShard(id);
        Optional<FetchSession> found = shard.get(id);
        if (found.isEmpty())
            return 0;
        ImplicitLinkedHashCollection<FetchSession.CachedPartition> map = found.get().partitionMap();
        map.clear();
        fill(map, size);
        if (found.get().isEmpty())
            shard.remove(found.get());
        else
            shard.touch(found.get(), now);
        return 1;
    }

    private static ImplicitLinkedHashCollection<FetchSession.CachedPartition> partitions(int size) {
        ImplicitLinkedHashCollection<FetchSession.CachedPartition> map = new ImplicitLinkedHashCollection<>(size);
        fill(map, size);
        return map;
    }

    private static void fill(ImplicitLinkedHashCollection<FetchSession.CachedPartition> map, int size) {
        for (int i = 0; i < size; i++)
            map.mustAdd(new FetchSession.CachedPartition(new TopicIdPartition(TOPIC, i, "t")));
    }
}
