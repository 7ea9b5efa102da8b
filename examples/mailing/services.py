"""What a company has before it has Fanfold: a service that knows its recipients, and one that sends mails."""

import threading

from lists import share
from serving import serve

PAGE = 500
PER_CALL = 50


class Company:
    """Lists to read, and every mail that was sent."""

    def __init__(self, lists):
        self.lists = lists
        self.answers = {}  # by idempotency key
        self.refused = set()
        self.sent = []  # (to, content), in order
        self.bounced = []  # (to, content)
        self.calls = []  # (members, contents)
        self.lock = threading.Lock()
        self.url = serve(self.answer)

    def answer(self, path, headers, body):
        if path != "/mails":
            return 200, {}, self.page(*path.split("/")[2:], body)
        status, document = self.send(headers["Idempotency-Key"], body)
        return status, {"Retry-After": 1} if status == 429 else {}, document

    def page(self, name, content, asked):
        """A page of a list, of the recipients in this partition's share. `/lists/customers/A`: the list, the content."""
        rows = [to for to in self.lists[name] if share(to, asked["of"]) == asked["partition"]]
        start = asked["cursor"] or 0
        tasks = [
            {"kind": "mail", "content": {"push": "spring", "content": content, "to": to}}
            for to in rows[start : start + PAGE]
        ]
        return {"tasks": tasks, "cursor": start + PAGE if start + PAGE < len(rows) else None}

    def send(self, key, call):
        """Sends mails of one content. The first call in 20 is refused, as such services do; a repeated call does nothing."""
        with self.lock:
            if key not in self.refused and share(key, 20) == 0:
                self.refused.add(key)
                return 429, {}
            if key not in self.answers:
                self.calls.append((len(call["members"]), len({member["content"]["content"] for member in call["members"]})))
                self.answers[key] = [self.deliver(member) for member in call["members"]]
            return 200, {"members": self.answers[key]}

    def deliver(self, member):
        to = member["content"]["to"]
        if share(f"{to} bounces", 1_000) == 0:
            self.bounced.append((to, member["content"]["content"]))
            return {"id": member["id"], "outcome": "failed", "error": "no such mailbox"}
        self.sent.append((to, member["content"]["content"]))
        return {"id": member["id"], "outcome": "succeeded"}

    def opened(self, content):
        """How many of those who got this content opened it."""
        likes = {"A": 21, "B": 27}[content]
        return sum(share(f"{to} opens {content}", 100) < likes for to, sent in self.sent if sent == content)
