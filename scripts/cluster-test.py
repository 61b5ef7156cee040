#!/usr/bin/env python3
"""scripts/cluster-test.py BINARY [--short | --growth] [--keep]: kills and partitions a cluster under load.

Starts the cluster of scripts/cluster.sh and a model provider on its network, puts questions and
actions on the balancer, and meanwhile kills a replica, kills the primary, and partitions the next
primary with a replica for longer than a lease. Then it compares the journals with what the clients
were told and with what the provider was asked. Exit code 1 if a figure that must be 0 is not.
`--short` kills one of each kind and has no partition. `--growth` kills nothing and counts the runs
that one, two and three replicas end a second. docs/scale.md explains the tables.
"""

import argparse
import collections
import concurrent.futures
import datetime
import http.client
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

CLUSTER = pathlib.Path(__file__).resolve().parent / "cluster.sh"
BALANCER = ("10.77.0.30", 8080)
PROVIDER = ("10.77.0.30", 9000)
REPLICAS = {"app1": "10.77.0.21", "app2": "10.77.0.22", "app3": "10.77.0.23"}
# Outlasts the shipped `leaseSeconds` of 30 of all runs that are in flight when it begins.
PARTITION = 40


def cluster(*arguments, check=True):
    done = subprocess.run([CLUSTER, *arguments], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if check and done.returncode != 0:
        sys.exit(f"cluster.sh {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


# --- The model provider -----------------------------------------------------------------------


def reply(schema, text, system):
    """Returns the output for a schema: each call of a run is known by its fields."""
    fields = schema.get("properties", {})
    if "agentsToRun" in fields:
        return {"taskType": "VERBAL_REASONING", "agentsToRun": ["solver", "critic", "verifier"], "rounds": 1,
                "needsClarification": False, "clarificationQuestion": None, "outputShape": "ask", "demands": []}
    if "replyMarkdown" in fields:
        return {"replyMarkdown": "Canberra is the capital of Australia.",
                "meta": {"taskType": "VERBAL_REASONING", "tldr": ["Canberra."], "finalAnswer": "Canberra",
                         "assumptions": [], "acceptanceTests": [], "planUnit": "hours", "planSteps": [],
                         "planAssumptions": [], "planRisks": [], "planConfidence": 0.5},
                "audit": {"unitsUsed": ["solver:u1"], "disagreements": [], "answerJustification": "",
                          "conflictPenalty": 0.0, "coverageBonus": 0.05, "quarantineJustifications": [],
                          "fallbackQuestion": {"question": "Which Australia?",
                                               "options": ["A the country", "B the continent", "C a ship"]}}}
    if "claims" in fields and "parts" in fields:
        ids = sorted(set(re.findall(r"\bR\d+\.\d+\b", text)))
        reports = sorted({i.split(".")[0] for i in ids})
        claims = [{"claim": i, "supportedBy": [r for r in reports if not i.startswith(r + ".")], "contradictedBy": [],
                   "holds": "yes", "by": "source", "evidence": "Parliament House stands in Canberra."} for i in ids]
        return {"claims": claims, "sameAnswers": [reports] if len(reports) > 1 else [],
                "parts": [{"part": "the capital", "answeredBy": reports}], "reports": []}
    if "answerSummary" in fields:
        found = re.search(r'"?agent"?\W{0,12}(solver|critic|verifier)', system + text)
        return {"agent": found.group(1) if found else "solver",
                "answerSummary": ["Canberra is the capital of Australia."], "assumptions": [],
                "reasoning": "The seat of parliament has been Canberra since 1927.", "stepsOrDeliverables": [],
                "failureModes": ["None known."], "selfConfidence": 0.9,
                "units": [{"id": "u1", "topic": "capital", "text": "Canberra", "tags": ["answer", "key"]},
                          {"id": "u2", "topic": "parliament", "text": "Parliament moved to Canberra in 1927.",
                           "tags": ["key", "memory"]}]}
    return {}


class Provider(http.server.BaseHTTPRequestHandler):
    """Speaks the Messages API, takes its time, and notes the key of each call."""

    protocol_version = "HTTP/1.1"
    latency = 1.0
    calls = []

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        # Appending to a list is atomic.
        self.calls.append(self.headers["idempotency-key"])
        text = "\n".join(part.get("text", "") for m in body["messages"] for part in m["content"])
        system = "\n".join(block["text"] for block in body.get("system", []))
        form = (body.get("output_config") or {}).get("format") or {}
        schema = form.get("schema") or (body.get("tools") or [{}])[0].get("input_schema") or {}
        output = json.dumps(reply(schema, text, system))
        time.sleep(self.latency)
        usage = {"input_tokens": (len(text) + len(system)) // 4, "output_tokens": len(output) // 4,
                 "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        answer = json.dumps({"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"],
                             "content": [{"type": "text", "text": output}], "stop_reason": "end_turn",
                             "stop_sequence": None, "usage": usage}).encode()
        try:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        except OSError:
            # The replica was killed.
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request, client_address):
        """A killed replica breaks its connections; any other error is shown."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


# --- The clients ------------------------------------------------------------------------------


class Clients:
    """Sends questions and actions to the balancer. Repeats each under its key until it is accepted."""

    def __init__(self, token):
        self.token = token
        self.start = time.monotonic()
        self.began = time.time()
        self.lock = threading.Lock()
        self.accepted = {}  # message id -> run id
        self.done = {}  # message id -> text to remember
        self.moments = []  # when a question was accepted
        self.refused = collections.Counter()
        self.stop = threading.Event()

    def now(self):
        return time.monotonic() - self.start

    def request(self, method, path, body=None, headers=(), timeout=15):
        connection = http.client.HTTPConnection(*BALANCER, timeout=timeout)
        try:
            payload = None if body is None else json.dumps(body)
            connection.request(method, path, payload, {"authorization": f"Bearer {self.token}",
                                                       "content-type": "application/json", **dict(headers)})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def until_accepted(self, path, body, headers, good):
        while True:
            try:
                status, headers_back, _ = self.request("POST", path, body, headers)
            except (OSError, http.client.HTTPException) as error:
                status, headers_back = type(error).__name__, {}
            if status == good:
                return headers_back
            with self.lock:
                self.refused[status] += 1
            time.sleep(0.5)

    def ask(self, number):
        body = {"source": "http", "mode": "ask", "message": "What is the capital of Australia?",
                "user": {"id": f"u{number}", "name": "Ada"},
                "context": {"channelId": "c1", "messageId": f"m{number}"}}
        headers = self.until_accepted("/api/chat", body, {"prefer": "respond-async"}, 202)
        with self.lock:
            self.accepted[f"m{number}"] = headers["x-request-id"]
            self.moments.append(self.now())

    def act(self, number):
        text = f"the duke hates dog number {number}"
        body = {"source": "http", "message": f"remember that {text}", "user": {"id": f"u{number}", "name": "Ada"},
                "context": {"channelId": "c1", "messageId": f"a{number}"}}
        self.until_accepted("/api/act", body, {}, 200)
        with self.lock:
            self.done[f"a{number}"] = text

    def load(self, rate, seconds):
        """Starts a question every 1/rate s, and an action with each fifth one. Waits for the last answer."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=512) as pool:
            for number in range(int(rate * seconds)):
                delay = number / rate - self.now()
                if delay > 0:
                    time.sleep(delay)
                pool.submit(self.ask, number)
                if number % 5 == 0:
                    pool.submit(self.act, number)

    def pause_after(self, moment, until):
        """Returns the longest time without an accepted question in a window."""
        if moment >= until:
            return 0.0
        times = [moment, *sorted(t for t in self.moments if moment <= t < until), until]
        return max(b - a for a, b in zip(times, times[1:]))


def watch(clients, seen):
    """Asks each replica each half second whether it is ready. Notes changes."""
    before = {}
    while not clients.stop.is_set():
        for name, host in REPLICAS.items():
            connection = http.client.HTTPConnection(host, 8080, timeout=6)
            try:
                connection.request("GET", "/ready")
                response = connection.getresponse()
                problem = json.loads(response.read())
                answer = (response.status, problem.get("detail", ""))
            except (OSError, http.client.HTTPException, ValueError):
                answer = (None, "no answer")
            finally:
                connection.close()
            if before.get(name) != answer:
                before[name] = answer
                seen.append((clients.now(), name, *answer))
        clients.stop.wait(0.5)


# --- The faults -------------------------------------------------------------------------------


def faults(clients, seconds, short):
    """Returns the events: (moment, what)."""
    events = []

    def at(moment):
        time.sleep(max(0, moment - clients.now()))

    def note(what):
        events.append((clients.now(), what))
        print(f"{clients.now():6.1f} s  {what}", file=sys.stderr)

    def until(what, condition, limit=90):
        end = clients.now() + limit
        while not condition():
            if clients.now() > end:
                sys.exit(f"this did not come within {limit} s: {what}")
            time.sleep(0.5)
        note(what)

    def other_primary(former):
        now = cluster("primary", check=False)
        return now not in ("", former)

    at(seconds * 0.08)
    cluster("kill-replica", "1")
    note("replica app1 is killed")
    at(seconds * 0.12)
    former = cluster("kill-primary")
    note(f"the primary {former} is killed")
    until("the other database node is the primary", lambda: other_primary(former))
    cluster("start", "app1")
    cluster("start", former)
    note(f"app1 and {former} are started")
    if short:
        return events
    until(f"{former} is the synchronous standby", lambda: "replica running synchronous" in cluster("status"))
    at(seconds * 0.5)
    former = cluster("partition", "3").split()[0]
    begin = clients.now()
    note(f"the primary {former} and replica app3 are partitioned")
    until("the other database node is the primary", lambda: other_primary(former))
    at(begin + PARTITION)
    cluster("heal")
    note("the partition ends")
    at(seconds * 0.92)
    cluster("kill-replica", "2")
    note("replica app2 is killed")
    time.sleep(2)
    cluster("start", "app2")
    note("replica app2 is started")
    until(f"{former} is the synchronous standby", lambda: "replica running synchronous" in cluster("status"))
    return events


# --- The checks -------------------------------------------------------------------------------


def ends(clients, limit):
    """Waits for the end of all accepted runs. Returns the state of each."""
    states = {}
    end = time.monotonic() + limit
    while time.monotonic() < end and len(states) < len(clients.accepted):
        for run in set(clients.accepted.values()) - set(states):
            try:
                status, _, body = clients.request("GET", f"/api/runs/{run}")
            except (OSError, http.client.HTTPException):
                continue
            if status == 404:
                states[run] = "unknown"
            elif status == 200:
                state = json.loads(body)["state"]
                if state not in ("queued", "running"):
                    states[run] = state
        time.sleep(1)
    return states


def base(call):
    """Returns a call without the number of its attempt, and the number."""
    step, _, attempt = call.partition("#")
    return step, int(attempt or 1)


def journals(clients):
    """Returns the events of each accepted run, and the runs with a broken chain."""
    found, broken = {}, []
    for run in clients.accepted.values():
        status, _, body = clients.request("GET", f"/api/runs/{run}/journal", timeout=30)
        journal = json.loads(body)
        if status != 200 or journal.get("verified") is not True:
            broken.append(run)
        found[run] = journal.get("entries", [])
    return found, broken


def bought(journal_of, calls):
    """Compares journals with the provider's calls: same key twice, settled and bought again, in doubt."""
    twice = [key for key, n in collections.Counter(calls).items() if n > 1]
    asked = collections.defaultdict(set)
    for key in calls:
        run, _, call = key.partition("/")
        step, attempt = base(call)
        asked[run, step].add(attempt)
    again, in_doubt = [], 0
    for run, entries in journal_of.items():
        answered = {}
        for body in (entry["body"] for entry in entries):
            data = body.get("data") or {}
            if body["kind"] == "call_settled" and data["result"]["type"] == "answered":
                step, attempt = base(data["call"])
                answered[step] = attempt
        for step, attempt in answered.items():
            if max(asked[run, step], default=0) > attempt:
                again.append(f"{run}/{step}")
        in_doubt += sum(1 for step, attempts in asked.items() if step[0] == run and len(attempts) > 1)
    return twice, again, in_doubt


def taken_over(journal_of, clients):
    """Returns when a process continued a run of another one, in seconds of the test."""
    moments = []
    for entries in journal_of.values():
        claims = [entry["at"] for entry in entries if entry["body"]["kind"] == "claimed"]
        moments += [datetime.datetime.fromisoformat(at).timestamp() - clients.began for at in claims[1:]]
    return moments


def query(statement):
    password = pathlib.Path(folder(), "password").read_text().strip()
    host = {"db1": "10.77.0.11", "db2": "10.77.0.12"}[cluster("primary")]
    command = ["psql", "-qAtX", f"postgres://conclave:{password}@{host}/conclave", "-c", statement]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.split()


def folder():
    return os.environ["CONCLAVE_CLUSTER"]


def logged(text):
    """Counts a line in the logs of the replicas."""
    logs = pathlib.Path(folder()).glob("app*/conclave.log")
    return sum(text in line for log in logs for line in log.read_text(errors="replace").splitlines())


def verified(binary, token, runs):
    """Counts the runs that `conclave verify` does not confirm."""
    variables = {**os.environ, "CONCLAVE_TOKEN": token}
    host, port = BALANCER
    command = [binary, "verify", "--server", f"http://{host}:{port}"]
    return sum(subprocess.run([*command, run], env=variables, capture_output=True, check=False).returncode != 0
               for run in runs)


def inside(arguments):
    """The test, in the network of the balancer."""
    Provider.latency = arguments.latency
    provider = Server(PROVIDER, Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    token = pathlib.Path(folder(), "token").read_text().strip()
    if arguments.growth:
        growth(arguments, token)
        return
    clients, seen, result = Clients(token), [], {}
    threading.Thread(target=watch, args=(clients, seen), daemon=True).start()
    disturber = threading.Thread(
        target=lambda: result.update(events=faults(clients, arguments.seconds, arguments.short)))
    disturber.start()
    clients.load(arguments.rate, arguments.seconds)
    disturber.join()
    if "events" not in result:
        sys.exit("a fault could not be made")
    states = ends(clients, 120)
    clients.stop.set()
    journal_of, broken = journals(clients)
    twice, again, in_doubt = bought(journal_of, Provider.calls)
    sample = list(clients.accepted.values())[:: max(1, len(clients.accepted) // 25)]
    unverified = verified(arguments.binary, token, sample)
    per_key = query("SELECT COUNT(*) FROM runs WHERE kind = 'chat'")
    memories = collections.Counter(query("SELECT regexp_replace(content, '^.* ', '') FROM memories"))
    acts = {text.rsplit(" ", 1)[1] for text in clients.done.values()}
    must_be_zero = {
        "accepted runs lost": sum(s == "unknown" for s in states.values()) + len(clients.accepted) - len(states),
        "accepted runs twice": int(per_key[0]) - len(clients.accepted),
        "calls bought twice under one key": len(twice),
        "settled calls bought again": len(again),
        "effects lost": len(acts - set(memories)),
        "effects twice": sum(n > 1 for n in memories.values()),
        "broken chains": len(broken) + unverified,
        "runs without a reply": sum(state != "answered" for state in states.values()),
    }
    print(f"\nCluster: two database nodes, three replicas, {arguments.seconds} s of load.\n")
    continued = taken_over(journal_of, clients)
    print("| event | at s | longest time without an accepted question, s | runs taken over until the next event |")
    print("| ----- | ---: | --------------------------------------------: | -----------------------------------: |")
    moments = [moment for moment, _ in result["events"]] + [max([*clients.moments, *continued])]
    for (moment, what), following in zip(result["events"], moments[1:]):
        runs = sum(moment <= at < following for at in continued)
        print(f"| {what} | {moment:.0f} | {clients.pause_after(moment, following):.1f} | {runs} |")
    print("\n| `/ready` | s | status | detail |\n| --- | -: | -: | --- |")
    for moment, name, status, detail in seen:
        print(f"| {name} | {moment:.1f} | {status or '-'} | {detail} |")
    print("\n| figure | |\n| --- | -: |")
    print(f"| questions accepted | {len(clients.accepted)} |")
    print(f"| actions executed | {len(clients.done)} |")
    print(f"| requests repeated by clients | {dict(clients.refused)} |")
    print(f"| states at the end | {dict(collections.Counter(states.values()))} |")
    print(f"| runs taken over | {len(continued)} |")
    print(f"| calls at the provider | {len(Provider.calls)} |")
    print(f"| steps in doubt that were bought again | {in_doubt} |")
    for line in ("the database is unavailable", "the database is available again", "another database server is the primary now"):
        print(f"| log lines: {line} | {logged(line)} |")
    for name, figure in must_be_zero.items():
        print(f"| **{name}** (must be 0) | {figure} |")
    wrong = [name for name, figure in must_be_zero.items() if figure != 0]
    if wrong:
        sys.exit(f"not 0: {', '.join(wrong)}")


# --- Growth -----------------------------------------------------------------------------------

# Calls in flight of one replica. Half as many of its runs are active, so this is its bound.
CALLS_AT_ONCE = 16


def processor_seconds(names):
    """Returns the processor time of the processes with these names in the cluster's networks."""
    ticks = 0
    inodes = {os.stat(path).st_ino for path in pathlib.Path("/run/netns").glob(cluster("prefix") + "-*")}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.stat(process / "ns/net").st_ino not in inodes:
                continue
            name, _, rest = process.joinpath("stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        if name in names:
            # utime, stime, and those of ended children.
            ticks += sum(int(n) for n in rest.split()[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def counters():
    """Returns what the database has written: commits, bytes of WAL, bytes of the database."""
    statement = """SELECT xact_commit || ' ' || pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') || ' ' ||
                   pg_database_size(current_database()) FROM pg_stat_database WHERE datname = current_database()"""
    return [int(n) for n in query(statement)]


def growth(arguments, token):
    """Counts the runs that end a second, with as many clients as keep every replica busy."""
    print(f"\nGrowth: each replica has {CALLS_AT_ONCE} calls in flight at most, a call takes {arguments.latency:g} s.\n")
    print("| replicas | clients | runs/s | of N times one | p50 s | service ms/run | PostgreSQL ms/run | transactions/run | WAL KB/run | database KB/run |")
    print("| -: | -: | -: | -: | -: | -: | -: | -: | -: | -: |")
    one = None
    for replicas in (1, 2, 3):
        if replicas == 1:
            cluster("stop", "app2")
            cluster("stop", "app3")
        else:
            cluster("start", f"app{replicas}")
        time.sleep(8)
        clients, times, stop = Clients(token), [], threading.Event()

        def ask(first):
            number = first
            while not stop.is_set():
                begin = time.monotonic()
                body = {"source": "http", "mode": "ask", "message": "What is the capital of Australia?",
                        "user": {"id": f"g{replicas}-{number}", "name": "Ada"}, "context": {"channelId": "c1"}}
                status, _, _ = clients.request("POST", "/api/chat", body, timeout=120)
                if status != 200:
                    sys.exit(f"a run ended with {status}")
                times.append((time.monotonic(), time.monotonic() - begin))
                number += 1000

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(replicas * CALLS_AT_ONCE)]
        for thread in threads:
            thread.start()
        time.sleep(15)
        before = (time.monotonic(), processor_seconds({pathlib.Path(arguments.binary).name[:15]}), processor_seconds({"postgres"}), counters())
        time.sleep(arguments.seconds)
        after = (time.monotonic(), processor_seconds({pathlib.Path(arguments.binary).name[:15]}), processor_seconds({"postgres"}), counters())
        stop.set()
        for thread in threads:
            thread.join()
        ended = sorted(took for at, took in times if before[0] <= at < after[0])
        rate = len(ended) / (after[0] - before[0])
        one = one or rate
        commits, wal, size = ((b - a) / len(ended) for a, b in zip(before[3], after[3]))
        service, database = (1000 * (after[i] - before[i]) / len(ended) for i in (1, 2))
        print(f"| {replicas} | {len(threads)} | {rate:.2f} | {rate / one / replicas:.2f} | {ended[len(ended) // 2]:.1f} "
              f"| {service:.1f} | {database:.1f} | {commits:.1f} | {wal / 1000:.0f} | {size / 1000:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--rate", type=float, default=5, help="questions a second")
    parser.add_argument("--latency", type=float, default=1, help="seconds of a call at the provider")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.seconds = arguments.seconds or (40 if arguments.short or arguments.growth else 120)
    if arguments.inside:
        inside(arguments)
        return
    with tempfile.TemporaryDirectory(prefix="conclave-cluster.") as temporary:
        os.environ["CONCLAVE_CLUSTER"] = f"{temporary}/cluster"
        # The user of PostgreSQL enters it.
        os.chmod(temporary, 0o755)
        if arguments.growth:
            config = json.loads(CLUSTER.parents[1].joinpath("llm.config.json").read_text())
            config["providers"]["anthropic"]["maxConcurrent"] = CALLS_AT_ONCE
            os.environ["CONCLAVE_CONFIG"] = f"{temporary}/config.json"
            pathlib.Path(temporary, "config.json").write_text(json.dumps(config))
        try:
            cluster("up", arguments.binary)
            command = [CLUSTER, "exec", "lb", sys.executable, *sys.argv, "--inside", "--seconds",
                       str(arguments.seconds)]
            code = subprocess.run(command, check=False).returncode
            if arguments.keep:
                kept = tempfile.mkdtemp(prefix="conclave-cluster-logs.")
                subprocess.run(["cp", "-r", f"{temporary}/cluster", kept], check=False)
                print(f"logs: {kept}", file=sys.stderr)
        finally:
            cluster("down", check=False)
    sys.exit(code)


if __name__ == "__main__":
    main()
