"""Point 4: what is used again is decided by meaning; handles are stable, corrections are read in every language."""

from panel import Panel, Turn

ALL = ["solver", "critic", "verifier"]
REGION, SWARM, LOAD = (
    "The service runs in one region.",
    "The team runs Docker Swarm.",
    "The load stays below 100 requests a second.",
)
WORDS = {  # assumptions; claims of solver, critic and verifier; reply and TL;DR; the same for Kubernetes
    "en": (
        (REGION, SWARM, LOAD, "The cluster runs version 1.30 or newer."),
        (
            "Docker Swarm replaces replicas one by one with update_config parallelism 1 (Docker manual).",
            "Docker Swarm takes a replica into service only after its health check passes (Docker manual).",
            "An error rate above 1 % for two minutes is a sound reason to stop a rollout.",
        ),
        (
            "Update one replica at a time, start the new one first, and stop when the error rate is above 1 % for two minutes.",
            "Update one replica at a time and watch the error rate.",
        ),
        (
            "A Deployment with maxUnavailable 0 and maxSurge 1 replaces pods one by one (Kubernetes manual).",
            "A pod takes traffic only after its readiness probe passes (Kubernetes manual).",
        ),
        (
            "Use a Deployment with `maxSurge: 1` and `maxUnavailable: 0`; stop when the error rate is above 1 % for two minutes.",
            "Use a Deployment with maxSurge 1 and maxUnavailable 0.",
        ),
    ),
    "de": (
        (
            "Der Dienst läuft in einer Region.",
            "Das Team nutzt Docker Swarm.",
            "Die Last bleibt unter 100 Anfragen je Sekunde.",
            "Der Cluster hat Version 1.30 oder neuer.",
        ),
        (
            "Docker Swarm ersetzt mit update_config parallelism 1 eine Kopie nach der anderen (Handbuch von Docker).",
            "Docker Swarm nimmt eine Kopie erst nach ihrer Prüfung in Betrieb (Handbuch von Docker).",
            "Eine Fehlerrate über 1 % für zwei Minuten ist ein guter Grund zum Abbruch.",
        ),
        (
            "Ersetze eine Kopie nach der anderen, starte die neue zuerst und brich ab, wenn die Fehlerrate zwei Minuten über 1 % liegt.",
            "Eine Kopie nach der anderen, mit Blick auf die Fehlerrate.",
        ),
        (
            "Ein Deployment mit maxUnavailable 0 und maxSurge 1 ersetzt einen Pod nach dem anderen (Handbuch von Kubernetes).",
            "Ein Pod bekommt erst nach bestandener Readiness-Prüfung Anfragen (Handbuch von Kubernetes).",
        ),
        (
            "Nimm ein Deployment mit `maxSurge: 1` und `maxUnavailable: 0`; brich ab, wenn die Fehlerrate zwei Minuten über 1 % liegt.",
            "Ein Deployment mit maxSurge 1 und maxUnavailable 0.",
        ),
    ),
    "es": (
        (
            "El servicio funciona en una sola región.",
            "El equipo usa Docker Swarm.",
            "La carga no pasa de 100 peticiones por segundo.",
            "El clúster tiene la versión 1.30 o posterior.",
        ),
        (
            "Docker Swarm sustituye las réplicas una a una con update_config parallelism 1 (manual de Docker).",
            "Docker Swarm pone una réplica en servicio solo tras su comprobación (manual de Docker).",
            "Una tasa de errores superior al 1 % durante dos minutos es motivo para parar.",
        ),
        (
            "Sustituye las réplicas una a una, arranca primero la nueva y para si la tasa de errores supera el 1 % durante dos minutos.",
            "Una réplica tras otra, mirando la tasa de errores.",
        ),
        (
            "Un Deployment con maxUnavailable 0 y maxSurge 1 sustituye los pods uno a uno (manual de Kubernetes).",
            "Un pod recibe tráfico solo tras superar su readiness probe (manual de Kubernetes).",
        ),
        (
            "Usa un Deployment con `maxSurge: 1` y `maxUnavailable: 0`; para si la tasa de errores supera el 1 % durante dos minutos.",
            "Un Deployment con maxSurge 1 y maxUnavailable 0.",
        ),
    ),
    "ja": (
        (
            "サービスは一つの地域で動いている。",
            "チームはDocker Swarmを使っている。",
            "負荷は毎秒100件を超えない。",
            "クラスターは1.30以降である。",
        ),
        (
            "Docker Swarmはupdate_configのparallelism 1で複製を一つずつ置き換える（Dockerの手引き）。",
            "Docker Swarmは検査に合格した複製だけを使い始める（Dockerの手引き）。",
            "エラー率が2分間1%を超えたら更新を止めるべきである。",
        ),
        (
            "複製を一つずつ置き換え、新しいものを先に起動し、エラー率が2分間1%を超えたら止めます。",
            "一つずつ置き換え、エラー率を見ます。",
        ),
        (
            "maxUnavailable 0とmaxSurge 1のDeploymentはPodを一つずつ置き換える（Kubernetesの手引き）。",
            "Podは準備の検査に合格した後に通信を受ける（Kubernetesの手引き）。",
        ),
        (
            "`maxSurge: 1`と`maxUnavailable: 0`のDeploymentを使い、エラー率が2分間1%を超えたら止めます。",
            "maxSurge 1とmaxUnavailable 0のDeploymentを使います。",
        ),
    ),
}


def rollout(lang: str = "en", **more) -> dict:
    """Solver lists the orchestrator as an assumption, critic only uses it in its claims, verifier not at all."""
    (region, swarm, load, _), claims, (reply, tldr), _, _ = WORDS[lang]
    topics = ("update order", "health check", "error rate")
    return {
        "type": "TECHNICAL_EXECUTION",
        "evidence": claims[0],
        "parts": ["how to roll out"],
        "lone": ALL,
        "tldr": [tldr],
        "reply": reply,
        "assumptions_of": {"solver": [region, swarm, load], "critic": [region], "verifier": [load]},
        "ledger": [(region, "guess"), (swarm, "guess"), (load, "guess")],
        "own": {a: [(t, c, "sourced")] for a, t, c in zip(ALL, topics, claims)},
        **more,
    }


def kubernetes(lang: str = "en") -> dict:
    """What the models say once they know that it is Kubernetes; the ledger comes in another order."""
    (region, _, load, version), _, _, claims, (reply, tldr) = WORDS[lang]
    return {
        "own": {a: [("update order", claims[0], "sourced"), ("health check", claims[1], "sourced")] for a in ALL},
        "assumptions_of": {a: [region, load] for a in ALL},
        "ledger": [(version, "guess"), (load, "guess"), (region, "guess")],
        "reply": reply,
        "tldr": [tldr],
        "evidence": claims[0],
    }


def corrected(name: str, lang: str, first: str, correction: str, said: str, example: bool = False) -> Panel:
    """A2 is corrected: whoever used its value anywhere is asked again, the others are not."""
    return Panel(
        name,
        4,
        [
            Turn(first, c=(0.7, 1), has=[r"A2\W[^\n]*Swarm"]),
            Turn(
                correction,
                facts={**kubernetes(lang), "correction": ("A2", said)},
                c=(0, 1),
                outcome="answered",
                has=["maxSurge"],
                again=["solver", "critic"],
                spared=["verifier"],
                calls={"all": (3, 7)},
                checks=["continues"],
            ),
        ],
        rollout(lang),
        lang=lang,
        example=example,
        about="A numbered assumption is corrected; what does not use it is not bought again." if example else "",
    )


LACK = "cannot be determined: the volume of the tank is missing"
GAUGE = {
    "question": "What is the volume of the tank?",
    "options": [
        "A 30 cubic metres: a step is 300 litres",
        "B 40 cubic metres: a step is 400 litres",
        "C 50 cubic metres: a step is 500 litres",
    ],
}
SUPPLIED = {
    "answer": "400 litres",
    "truth": "400 litres",
    "lone": (),
    "own": {},
    "wrong": {},
    "lacks": "",
    "penalty": 0,
    "summary": ["One per cent of 40 cubic metres is 400 litres."],
    "claims": [("tank volume", "The tank holds 40 cubic metres.", "given")],
    "reasoning": "40 * 1000 = 40000\n40000 * 0.01 = 400",
    "evidence": "40000 * 0.01 = 400",
    "reply": "One step is **400 litres**.",
    "supplies": "The tank holds 40 cubic metres.",
}

PANELS = [
    Panel(
        "lacking-output-bought-again",
        4,
        [
            Turn(
                "How many litres is a 1 % step of the gauge on our new tank at the mill?",
                outcome="clarification",
                c=(0, 0.69),
                has=["volume|cubic"],
            ),
            Turn("It holds 40 cubic metres.", facts=SUPPLIED, c=(0, 1), has=["400"], again=ALL, checks=["continues"]),
        ],
        {
            **GAUGE,
            "summary": [f"It {LACK}."],
            "claims": [("litres per step", f"The litres per step {LACK} from the request.", "given")],
            "lacks": LACK,
            "penalty": 0.5,
            "reply": "It cannot be said without the volume.",
            "evidence": "",
        },
        about="All agents say what is missing; the answer supplies it.",
    ),
    Panel(
        "one-lacking-output-bought-again",
        4,
        [
            Turn(
                "How many litres is a 1 % step of the gauge on our second tank at the mill?",
                outcome="clarification",
                c=(0, 0.69),
            ),
            Turn("The second tank holds 40 cubic metres.", facts=SUPPLIED, c=(0, 1), has=["400"], again=["critic"]),
        ],
        {
            **GAUGE,
            "answer": "400 litres",
            "wrong": {"critic": ""},
            "own": {"critic": [("litres per step", f"The litres per step {LACK} from the request.", "given")]},
            "lone": ("critic",),
            "lacks": LACK,
            "claims": [("usual size", "Tanks of this type usually hold 40 cubic metres.", "memory")],
            "penalty": 0.5,
            "evidence": "",
            "reply": "A step is about 400 litres.",
        },
    ),
    Panel(
        "fehlende-angabe-geliefert",
        4,
        [
            Turn(
                "Wie hoch ist die Steuer auf den Gewinn aus meinem Verkauf der Wohnung?",
                outcome="clarification",
                c=(0, 0.69),
            ),
            Turn(
                "Gekauft 2010, verkauft 2024.",
                facts={
                    "summary": ["Der Gewinn ist steuerfrei, weil mehr als zehn Jahre dazwischen liegen."],
                    "claims": [("frist", "Die Frist beträgt zehn Jahre (§ 23 Abs. 1 Nr. 1 EStG).", "sourced")],
                    "lacks": "",
                    "penalty": 0,
                    "evidence": "§ 23 Abs. 1 Nr. 1 EStG",
                    "reply": "Der Gewinn ist **steuerfrei**: Zwischen Kauf und Verkauf liegen mehr als zehn Jahre.",
                    "supplies": "Gekauft 2010, verkauft 2024.",
                },
                c=(0, 1),
                has=["steuerfrei"],
                again=ALL,
                checks=["continues"],
            ),
        ],
        {
            "summary": ["Das lässt sich nicht bestimmen: Kaufdatum und Verkaufsdatum fehlen."],
            "claims": [
                ("steuer", "Die Steuer lässt sich nicht bestimmen: Kaufdatum und Verkaufsdatum fehlen.", "given")
            ],
            "lacks": "Kaufdatum und Verkaufsdatum fehlen",
            "penalty": 0.5,
            "evidence": "",
            "reply": "Ohne die Daten nicht zu sagen.",
            "question": "Wie viele Jahre liegen zwischen Kauf und Verkauf?",
            "options": [
                "A mehr als zehn: der Gewinn ist steuerfrei",
                "B weniger als zehn, selbst bewohnt: meist steuerfrei",
                "C weniger als zehn, vermietet: voll steuerpflichtig",
            ],
        },
        lang="de",
        about="Die Agenten sagen, was fehlt; die Antwort liefert es, und sie werden noch einmal gefragt.",
    ),
    Panel(
        "不足の情報を補う",
        4,
        [
            Turn("この動詞の敬語を教えてください。", outcome="clarification", c=(0, 0.69)),
            Turn(
                "「食べる」です。",
                facts={
                    "summary": ["「食べる」の尊敬語は「召し上がる」である。"],
                    "claims": [("尊敬語", "「食べる」の尊敬語は「召し上がる」である。", "sourced")],
                    "lacks": "",
                    "penalty": 0,
                    "evidence": "『敬語の指針』文化審議会",
                    "reply": "尊敬語は「召し上がる」、謙譲語は「いただく」です。",
                    "supplies": "「食べる」です。",
                },
                c=(0, 1),
                has=["召し上がる"],
                again=ALL,
                checks=["continues"],
            ),
        ],
        {
            "summary": ["どの動詞かが書かれていないため、決められません。"],
            "claims": [("動詞", "どの動詞かが書かれていないため、敬語は決められない。", "given")],
            "lacks": "どの動詞か",
            "penalty": 0.5,
            "evidence": "",
            "reply": "動詞が必要です。",
            "question": "どの動詞の敬語ですか。",
            "options": ["A 食べる：召し上がる・いただく", "B 行く：いらっしゃる・伺う", "C 見る：ご覧になる・拝見する"],
        },
        lang="ja",
    ),
    corrected(
        "correction-by-value",
        "en",
        "How do we roll out our web service without an outage?",
        "A2 is wrong: we run Kubernetes",
        "we run Kubernetes",
        True,
    ),
    corrected(
        "korrektur-deutsch",
        "de",
        "Wie rollen wir unseren Webdienst ohne Ausfall aus?",
        "A2 ist falsch: wir nutzen Kubernetes",
        "wir nutzen Kubernetes",
    ),
    corrected(
        "corrección-española",
        "es",
        "¿Cómo desplegamos nuestro servicio web sin interrupción?",
        "A2 es incorrecto: usamos Kubernetes",
        "usamos Kubernetes",
    ),
    corrected(
        "訂正-日本語",
        "ja",
        "停止せずにウェブサービスを更新するにはどうすればよいですか。",
        "A2は間違いです。Kubernetesを使っています。",
        "Kubernetesを使っています",
    ),
    corrected(
        "correction-in-plain-words",
        "en",
        "How do we roll out our mail service without an outage?",
        "Assumption A2 does not hold, our cluster is Kubernetes",
        "our cluster is Kubernetes",
    ),
    Panel(
        "strompreis-korrigiert",
        4,
        [
            Turn(
                "Was kostet der Betrieb einer Wärmepumpe mit 4000 kWh Strom im Jahr?",
                c=(0, 1),
                outcome="",
                has=["1200"],
            ),
            Turn(
                "A1 ist falsch: der Strom kostet 0,40 Euro je kWh",
                facts={
                    "correction": ("A1", "der Strom kostet 0,40 Euro je kWh"),
                    "answer": "1600 Euro",
                    "truth": "1600 Euro",
                    "reply": "Der Betrieb kostet **1600 Euro** im Jahr.",
                    "own": {a: [("strompreis", "4000 kWh zu 0,40 Euro kosten 1600 Euro.", "calculated")] for a in ALL},
                    "reasonings": {a: "4000 * 0.4 = 1600" for a in ALL},
                    "evidence": "4000 * 0.4 = 1600",
                    "ledger": [],
                },
                c=(0, 1),
                has=["1600"],
                again=["solver", "critic", "verifier"],
                checks=["continues"],
            ),
        ],
        {
            "answer": "1200 Euro",
            "lead": "Die Antwort ist",
            "topic": "kosten",
            "lone": ALL,
            "own": {
                "solver": [("strompreis", "4000 kWh zu 0,30 Euro kosten 1200 Euro.", "calculated")],
                "critic": [("kosten", "Bei 0,30 Euro je kWh sind es 1200 Euro.", "calculated")],
                "verifier": [("kosten", "1200 Euro entsprechen 100 Euro im Monat.", "calculated")],
            },
            "assumptions_of": {"solver": ["Der Strom kostet 0,30 Euro je kWh."], "critic": [], "verifier": []},
            "ledger": [("Der Strom kostet 0,30 Euro je kWh.", "guess")],
            "reasonings": {a: "4000 * 0.3 = 1200" for a in ALL},
            "evidence": "4000 * 0.3 = 1200",
            "reply": "Der Betrieb kostet **1200 Euro** im Jahr.",
            "parts": ["die Kosten"],
        },
        lang="de",
        about="Der Wert wird in den Rechnungen benutzt, auch wo er nicht als Annahme steht.",
    ),
    Panel(
        "handles-stay",
        4,
        [
            Turn(
                "How do we roll out our chat service without an outage?",
                c=(0.7, 1),
                has=[r"A1\W[^\n]*one region", r"A2\W[^\n]*Swarm", r"A3\W[^\n]*100 requests"],
            ),
            Turn(
                "A2 is wrong: the chat runs on Kubernetes",
                facts={**kubernetes(), "correction": ("A2", "the chat runs on Kubernetes")},
                has=[r"A1\W[^\n]*one region", r"A3\W[^\n]*100 requests"],
                lacks=[r"A[12]\W[^\n]*version 1\.30"],
                checks=["continues"],
            ),
            Turn(
                "A3 is wrong: we have 5000 requests a second",
                facts={"correction": ("A3", "we have 5000 requests a second"), "ledger": [(REGION, "guess")]},
                has=[r"A1\W[^\n]*one region"],
                lacks=[r"A3\W[^\n]*100 requests"],
                calls={"plan": (0, 1), "all": (2, 7)},
            ),
        ],
        rollout(),
        about="Handles are the same over a whole lineage, whatever order the model gives.",
    ),
    Panel(
        "unknown-handle-is-free",
        4,
        [
            Turn("How do we roll out our shop without an outage?", c=(0.7, 1)),
            Turn("A9 is wrong", outcome="", loose=True, status=(200, 404, 409, 422), has=["A9"], checks=["free"]),
        ],
        rollout(),
    ),
    Panel(
        "unbekannte-annahme",
        4,
        [
            Turn("Wie rollen wir unseren Laden ohne Ausfall aus?", c=(0.7, 1)),
            Turn(
                "A9 ist falsch",
                outcome="",
                loose=True,
                status=(200, 404, 409, 422),
                has=["A9"],
                calls={"all": (0, 1)},
                facts={"correction": ("A9", "A9 ist falsch")},
            ),
        ],
        rollout("de"),
        lang="de",
    ),
    Panel(
        "untouched-outputs-are-reused",
        4,
        [
            Turn("How do we roll out our search service without an outage?", c=(0.7, 1)),
            Turn(
                "A1 is wrong: it runs in three regions",
                facts={
                    "correction": ("A1", "it runs in three regions"),
                    "reply": "Update one region after the other, replica by replica.",
                },
                has=["region after the other"],
                again=["solver", "critic"],
                spared=["verifier"],
            ),
        ],
        rollout(),
    ),
]
