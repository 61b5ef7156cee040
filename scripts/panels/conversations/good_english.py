"""Honest English panels: nothing is wrong, so they ship, or ask where the answers really differ."""

from panel import Panel, Turn, good

PUMP_STEPS = [
    ("Isolate the pump and lock out the motor", 0.25, 0.5, 1),
    ("Drain the casing and open the seal chamber", 0.5, 1, 2),
    ("Replace the mechanical seal and the O-rings", 1, 1.5, 3),
    ("Align the coupling to 0.05 mm", 0.5, 1, 2),
    ("Refill, vent and run for 30 minutes", 0.5, 0.75, 1.5),
]

PUMP_REPLY = """The seal leaks because its faces have run dry. Replace it as a unit and vent the pump before the start.

1. Isolate the pump and lock out the motor.
2. Drain the casing and open the seal chamber.
3. Replace the mechanical seal and the O-rings; never reuse a face.
4. Align the coupling to 0.05 mm.
5. Refill, vent and run for 30 minutes.

A drip of less than 3 drops a minute after the run is normal while new faces settle."""

MIGRATION_STEPS = [
    ("Inventory the 12 services and their volumes", 2, 4, 8),
    ("Write manifests and set requests and limits", 8, 12, 24),
    ("Move the PostgreSQL data to a managed instance", 4, 6, 12),
    ("Run both stacks for a week behind a weighted route", 4, 8, 16),
    ("Switch the DNS records and remove the compose stack", 1, 2, 4),
]

MIGRATION_REPLY = """Move the stateless services first and the database last; keep the compose stack until a week has passed without a rollback.

1. Inventory the 12 services and their volumes.
2. Write manifests and set requests and limits from a week of `docker stats`.
3. Move the PostgreSQL data to a managed instance with logical replication.
4. Run both stacks for a week behind a weighted route, 10 % first.
5. Switch the DNS records and remove the compose stack.

Lower the TTL of the DNS records to 60 seconds two days before the switch."""

PANELS = [
    good(
        "pump-motor-power",
        "ask",
        "A pump lifts 20 litres of water a second by 15 metres at 60 % efficiency. What power does its motor need in kW?",
        answer="4.905 kW",
        topic="motor power",
        claims=[
            (
                "hydraulic power",
                "The hydraulic power is 1000 kg/m3 times 9.81 m/s2 times 0.02 m3/s times 15 m, that is 2943 W.",
                "calculated",
            ),
            ("efficiency", "At 60 % efficiency the shaft power is the hydraulic power divided by 0.6.", "given"),
        ],
        reasoning="1000 * 9.81 = 9810\n9810 * 0.02 = 196.2\n196.2 * 15 = 2943\n2943 / 0.6 = 4905\nSo the motor needs 4905 W, or 4.905 kW.",
        evidence="9810 * 0.02 * 15 / 0.6 = 4905",
        assumptions=["The liquid is clean water of 1000 kg/m3."],
        reply="The motor needs **4.905 kW**. The water takes 2943 W (1000 kg/m3 · 9.81 m/s2 · 0.02 m3/s · 15 m); divided by 0.6 that is 4905 W. "
        "Choose the next standard size, 5.5 kW.",
        parts=["the motor's power in kW"],
        turn={"has": [r"4\.905"], "lacks": ["Execution time estimate"], "cost": (0.002, 0.05)},
    ),
    good(
        "capital-of-australia",
        "ask",
        "Which city is the capital of Australia?",
        answer="Canberra",
        topic="capital",
        basis="sourced",
        claims=[
            (
                "seat of parliament",
                "The Parliament of Australia has sat in Canberra since 9 May 1927 (Parliament House records).",
                "sourced",
            )
        ],
        evidence="Seat of Government Act 1908 names the Yass-Canberra district.",
        reply="**Canberra** is the capital; Parliament has sat there since 1927.",
        parts=["the capital"],
        turn={"has": ["Canberra"], "cost": (0.002, 0.04)},
    ),
    good(
        "compound-interest",
        "ask",
        "I put 2000 euros into an account at 3 % interest a year, compounded yearly. How much is there after 2 years?",
        answer="2121.80 euros",
        topic="balance",
        claims=[
            ("first year", "After one year the balance is 2060 euros.", "calculated"),
            ("second year", "After two years the balance is 2121.80 euros.", "calculated"),
        ],
        reasoning="2000 * 1.03 = 2060\n2060 * 1.03 = 2121.8",
        evidence="2060 * 1.03 = 2121.8",
        parts=["the balance after 2 years"],
        reply="After two years there are **2121.80 euros**: 2060 after the first, and 3 % of that once more.",
        turn={"has": [r"2121\.80"]},
    ),
    good(
        "http-status",
        "ask",
        "Which HTTP status code fits a well-formed request that breaks a business rule?",
        answer="422",
        topic="status code",
        basis="sourced",
        type="TECHNICAL_EXECUTION",
        claims=[
            (
                "meaning of 422",
                "RFC 9110 section 15.5.21 defines 422 for content that is understood but cannot be processed.",
                "sourced",
            ),
            (
                "meaning of 400",
                "RFC 9110 section 15.5.1 reserves 400 for a request that the server cannot parse.",
                "sourced",
            ),
        ],
        evidence="RFC 9110, section 15.5.21",
        parts=["the status code"],
        reply="Use **422 Unprocessable Content**. The request is readable, so 400 would be wrong; what it says cannot be done.",
        turn={"has": ["422"]},
    ),
    good(
        "mechanical-seal",
        "audit",
        "Our centrifugal pump's mechanical seal leaks after a dry run. Write a repair procedure for one fitter.",
        example=True,
        type="TECHNICAL_EXECUTION",
        steps=PUMP_STEPS,
        unit="hours",
        reply=PUMP_REPLY,
        tldr=["Replace the seal as a unit and vent before the start."],
        claims=[
            ("seal faces", "Seal faces that ran dry are cracked by heat and must be replaced as a unit.", "sourced"),
            ("coupling alignment", "The coupling has to be aligned to 0.05 mm after the motor was moved.", "sourced"),
            ("venting", "A pump that is not vented runs its new seal dry at once.", "sourced"),
        ],
        assumptions=["A spare seal of the same type is in stock.", "The motor has a lockable isolator."],
        risks=["Seized coupling bolts"],
        tests=["Run for 30 minutes: fewer than 3 drops a minute leave the seal."],
        evidence="The maker's manual, chapter on seals, says the same.",
        parts=["a repair procedure"],
        turn={
            "has": ["Execution time estimate", "Audit appendix", "A1"],
            "calls": {"plan": 1, "agent": (3, 4), "synthesis": 1, "estimate": 0},
        },
    ),
    good(
        "compose-to-kubernetes",
        "deep",
        "We run 12 services with docker compose on one machine and want to move to Kubernetes without downtime. Plan it.",
        type="TECHNICAL_EXECUTION",
        optional=["implementer"],
        steps=MIGRATION_STEPS,
        unit="hours",
        reply=MIGRATION_REPLY,
        tldr=["Stateless services first, the database last, both stacks side by side for a week."],
        claims=[
            (
                "order of the move",
                "Stateless services can be moved first because they can run twice at the same time.",
                "sourced",
            ),
            ("database", "Logical replication lets PostgreSQL switch with seconds of write stop.", "sourced"),
            ("dns ttl", "A TTL of 60 seconds must be set at least one old TTL before the switch.", "sourced"),
        ],
        assumptions=["The cluster already exists.", "PostgreSQL is version 14 or newer."],
        risks=["Hidden state in a volume"],
        tests=["Kill one node: no request fails for longer than 5 seconds."],
        evidence="PostgreSQL manual, chapter 31, logical replication.",
        parts=["the order", "no downtime"],
        turn={
            "has": ["Execution time estimate"],
            "cost": (0.004, 0.2),
            "calls": {"plan": 1, "agent": (4, 4), "cross-check": (1, 2), "synthesis": 1},
        },
    ),
    good(
        "rubric-for-summaries",
        "audit",
        "Write a short rubric with which a model can grade summaries of support tickets from 1 to 5.",
        type="PROMPT_ENGINEERING",
        claims=[
            (
                "criteria",
                "A rubric grades steadily only if each criterion can be checked against the ticket.",
                "memory",
            ),
            ("scale", "Each step of the scale needs one observable difference.", "memory"),
        ],
        reply="**Grade the summary from 1 to 5.**\n\n- 5: names the problem, the product and the last state; nothing is invented.\n- 4: one of the three is vague.\n"
        "- 3: one of the three is missing.\n- 2: two are missing.\n- 1: something is invented, whatever else is right.\n\nGive the grade and the words of the ticket that decided it.",
        tldr=["Grade by three checkable facts; an invention is always a 1."],
        evidence="The wording of the request asks for grades 1 to 5.",
        parts=["a rubric", "grades 1 to 5"],
        turn={"has": ["invented"], "lacks": ["Execution time estimate"]},
    ),
    good(
        "tcp-or-udp",
        "ask",
        "Does DNS use TCP or UDP? Explain in two sentences.",
        type="TECHNICAL_EXECUTION",
        claims=[
            (
                "transport",
                "DNS uses UDP port 53 for most queries and TCP port 53 for long replies and zone transfers (RFC 1035, RFC 7766).",
                "sourced",
            ),
            ("truncation", "A reply with the TC bit tells the client to ask again over TCP (RFC 1035).", "sourced"),
        ],
        evidence="RFC 7766 section 5 requires both.",
        parts=["TCP or UDP", "two sentences"],
        reply="DNS uses both: UDP port 53 for most queries, TCP port 53 when a reply is long or a zone is transferred. A reply with the TC bit makes the client ask again over TCP.",
        turn={"has": ["UDP", "TCP"]},
    ),
    good(
        "sourdough-hydration",
        "ask",
        "A dough has 600 g of flour and 420 g of water. What is its hydration in percent?",
        answer="70 %",
        topic="hydration",
        claims=[("definition", "Hydration is the mass of water divided by the mass of flour.", "sourced")],
        reasoning="420 / 600 = 0.7\n0.7 * 100 = 70",
        evidence="420 / 600 = 0.7",
        parts=["the hydration"],
        reply="The hydration is **70 %**: 420 g of water for 600 g of flour.",
        turn={"has": ["70"]},
    ),
    good(
        "read-replica-lag",
        "deep",
        "Our PostgreSQL read replica lags by minutes during the nightly import. What are the likely causes, and what would you check first?",
        type="TECHNICAL_EXECUTION",
        claims=[
            (
                "single replay process",
                "One process replays the WAL on a standby, so a bulk import can outrun it.",
                "sourced",
            ),
            (
                "long queries",
                "A long query on the standby can delay replay up to max_standby_streaming_delay.",
                "sourced",
            ),
            (
                "first check",
                "pg_stat_replication shows on the primary whether WAL is late to arrive or late to be replayed.",
                "sourced",
            ),
        ],
        assumptions=["Replication is physical streaming replication."],
        evidence="PostgreSQL manual, chapters 27.2 and 28.2.",
        parts=["likely causes", "first check"],
        tldr=["Look at `pg_stat_replication` first: it tells a slow network from slow replay."],
        reply="Check `pg_stat_replication` on the primary first. If `sent_lsn` is behind, the network is slow; if `replay_lsn` is behind, the replica is.\n\n"
        "- The import outruns the single replay process: spread it over the night.\n- A long query holds replay back: lower `max_standby_streaming_delay`.\n"
        "- The disk of the replica is slower than that of the primary.",
        turn={
            "has": ["pg_stat_replication"],
            "cost": (0.004, 0.2),
            "calls": {"plan": 1, "agent": 3, "cross-check": 2, "synthesis": 1},
        },
    ),
    Panel(
        "disagreement-asks",
        0,
        [
            Turn(
                "Our chart says the tank holds 40 cubic metres and the gauge counts 1 % steps. How many litres is one step?",
                outcome="clarification",
                c=(0, 0.6999),
                has=["gross|net|usable", r"A\W", r"B\W", r"C\W"],
                lacks=["TL;DR"],
                calls={"plan": 1, "agent": 3},
            )
        ],
        {
            "answer": "400 litres",
            "wrong": {"critic": "360 litres", "verifier": "380 litres"},
            "truth": "",
            "topic": "litres per step",
            "claims": [("tank volume", "The chart gives a volume of 40 cubic metres.", "given")],
            "evidence": "",
            "question": "Does the gauge count per cent of the gross or of the usable volume?",
            "options": [
                "A the gross volume: one step is 400 litres",
                "B the usable volume of 36 cubic metres: one step is 360 litres",
                "C the volume up to the overflow: one step is 380 litres",
            ],
            "reply": "One step is **400 litres**.",
            "penalty": 0.5,
        },
        about="Three agents read the gauge in three ways, and nothing in the request decides.",
    ),
    Panel(
        "plan-asks-at-once",
        0,
        [
            Turn(
                "Fix this for me, please.",
                outcome="clarification",
                c=(0, 0),
                calls={"plan": 1, "agent": 3, "synthesis": 0, "all": 4},
                has=["code", "text"],
            ),
            Turn(
                "B",
                c=(0, 1),
                calls={"agent": 3, "synthesis": 1},
                has=["accommodate"],
                facts={
                    "summary": ["The sentence has one spelling mistake: accomodate."],
                    "claims": [("spelling", "The verb is spelt accommodate, with double c and double m.", "sourced")],
                    "reply": "Write *We can accommodate twelve guests*: the verb has a double c and a double m.",
                    "evidence": "Oxford English Dictionary, accommodate",
                },
            ),
        ],
        {},
        {
            "plan": {
                "needsClarification": True,
                "clarificationQuestion": {
                    "question": "What is to be fixed?",
                    "options": [
                        "A a piece of code: it will be debugged once you send it",
                        "B a text: its spelling and style will be corrected",
                        "C a setting of a device: steps will be given",
                    ],
                },
            }
        },
    ),
]
