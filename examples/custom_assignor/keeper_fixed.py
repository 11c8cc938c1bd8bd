"""A custom assignor: members keep what they own, the lightest get what is free, the heaviest give until all is level.

keeper.py without its bug: a member keeps what it owns only while it reads the topic (the last line of `kept`).
"""


class Keeper:
    name = "keeper"
    promises = ("balanced", "sticky")

    def assign(self, group):
        owner = self.kept(group)
        count = dict.fromkeys(sorted(group.members), 0)
        for member in owner.values():
            count[member] += 1

        def lightest(topic):
            readers = [member for member in count if topic in group.members[member].topics]
            return min(readers, key=count.get, default=None)

        def give(place, member):
            if place in owner:
                count[owner[place]] -= 1
            owner[place] = member
            count[member] += 1

        for topic in sorted(group.topics):
            for partition in range(group.topics[topic].partitions):
                if (topic, partition) not in owner and lightest(topic):
                    give((topic, partition), lightest(topic))
        while heavy := [place for place in sorted(owner) if count[owner[place]] > count[lightest(place[0])] + 1]:
            place = max(heavy, key=lambda place: count[owner[place]])
            give(place, lightest(place[0]))
        shares = {member: {} for member in group.members}
        for (topic, partition), member in sorted(owner.items()):
            shares[member].setdefault(topic, []).append(partition)
        return shares

    def kept(self, group):
        return {
            (topic, partition): member
            for member in sorted(group.members)
            for topic, partitions in group.members[member].owned.items()
            for partition in partitions
            if topic in group.topics and partition < group.topics[topic].partitions
            if topic in group.members[member].topics
        }
