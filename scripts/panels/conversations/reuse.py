"""Point 4: what is used again is decided by meaning; handles are stable, corrections are read in every language."""
from panel import Panel, Turn

REGION, SWARM, LOAD = "The service runs in one region.", "The team runs Docker Swarm.", "The load stays below 100 requests a second."
ALL = ["solver", "critic", "verifier"]


def rollout(**more) -> dict:
    """Solver lists the orchestrator as an assumption, critic only uses it in its reasoning, verifier not at all."""
    return {"type": "TECHNICAL_EXECUTION", "evidence": "The manual of the orchestrator says so.", "parts": ["how to roll out"], "lone": ALL, "tldr": ["Update one replica at a time and watch the error rate."],
            "assumptions_of": {"solver": [REGION, SWARM, LOAD], "critic": [REGION], "verifier": [LOAD]}, "ledger": [(REGION, "guess"), (SWARM, "guess"), (LOAD, "guess")],
            "own": {"solver": [("update order", "Docker Swarm replaces replicas one by one with update_config parallelism 1 (Docker manual).", "sourced"), ("rollback", "A failed update rolls back with failure_action rollback.", "sourced")],
                    "critic": [("health check", "Docker Swarm takes a replica into service only after its health check passes (Docker manual).", "sourced"), ("order", "The order start-first avoids a gap in capacity.", "sourced")],
                    "verifier": [("error rate", "An error rate above 1 % for two minutes is a sound reason to stop a rollout.", "memory"), ("spare capacity", "At 100 requests a second one replica of three can be missed.", "given")]},
            "reasonings": {"solver": "The update runs replica by replica.", "critic": "With Docker Swarm the health check decides when a replica counts.", "verifier": "The error rate is what users notice first."},
            "reply": "Update one replica at a time, start the new one first, and stop when the error rate is above 1 % for two minutes.", **more}


KUBERNETES = {"own": {a: [("update order", "A Deployment with maxUnavailable 0 and maxSurge 1 replaces pods one by one (Kubernetes manual).", "sourced"),
                          ("health check", "A pod takes traffic only after its readiness probe passes (Kubernetes manual).", "sourced")] for a in ALL},
              "assumptions_of": {a: [REGION, LOAD] for a in ALL}, "reasonings": {a: "The Deployment replaces pods one by one." for a in ALL},
              "ledger": [("The cluster runs version 1.30 or newer.", "guess"), (LOAD, "guess"), (REGION, "guess")], "tldr": ["Use a Deployment with maxSurge 1 and maxUnavailable 0."],
              "reply": "Use a Deployment with `maxSurge: 1` and `maxUnavailable: 0`; stop when the error rate is above 1 % for two minutes."}


def corrected(name: str, lang: str, first: str, correction: str, said: str, example: bool = False) -> Panel:
    """A2 is corrected: whoever used its value anywhere is asked again, the others are not."""
    return Panel(name, 4, [Turn(first, c=(0.7, 1), has=[r"A2\W[^\n]*Swarm"]),
                           Turn(correction, facts={**KUBERNETES, "correction": ("A2", said)}, c=(0, 1), outcome="answered", has=["maxSurge"], again=["solver", "critic"], spared=["verifier"], calls={"all": (3, 7)})],
                 rollout(), lang=lang, example=example, about="A numbered assumption is corrected; what does not use it is not bought again." if example else "")


LACK = "cannot be determined: the volume of the tank is missing"
GAUGE = {"question": "What is the volume of the tank?", "options": ["A 30 cubic metres: a step is 300 litres", "B 40 cubic metres: a step is 400 litres", "C 50 cubic metres: a step is 500 litres"]}
SUPPLIED = {"answer": "400 litres", "truth": "400 litres", "lone": (), "own": {}, "wrong": {}, "lacks": "", "penalty": 0, "summary": ["One per cent of 40 cubic metres is 400 litres."],
            "claims": [("tank volume", "The tank holds 40 cubic metres.", "given")], "reasoning": "40 * 1000 = 40000\n40000 * 0.01 = 400", "evidence": "40000 * 0.01 = 400", "reply": "One step is **400 litres**.",
            "supplies": "The tank holds 40 cubic metres."}

PANELS = [
    Panel("lacking-output-bought-again", 4, [
        Turn("How many litres is a 1 % step of the gauge on our new tank at the mill?", outcome="clarification", c=(0, 0.69), has=["volume|cubic"]),
        Turn("It holds 40 cubic metres.", facts=SUPPLIED, c=(0, 1), has=["400"], again=ALL)],
          {**GAUGE, "summary": [f"It {LACK}."], "claims": [("litres per step", f"The litres per step {LACK} from the request.", "given")], "lacks": LACK, "penalty": 0.5, "reply": "It cannot be said without the volume.", "evidence": ""},
          about="All agents say what is missing; the answer supplies it."),
    Panel("one-lacking-output-bought-again", 4, [
        Turn("How many litres is a 1 % step of the gauge on our second tank at the mill?", outcome="clarification", c=(0, 0.69)),
        Turn("The second tank holds 40 cubic metres.", facts=SUPPLIED, c=(0, 1), has=["400"], again=["critic"])],
          {**GAUGE, "answer": "400 litres", "wrong": {"critic": ""}, "own": {"critic": [("litres per step", f"The litres per step {LACK} from the request.", "given")]}, "lone": ("critic",), "lacks": LACK,
           "claims": [("usual size", "Tanks of this type usually hold 40 cubic metres.", "memory")], "penalty": 0.5, "evidence": "", "reply": "A step is about 400 litres."}),
    Panel("fehlende-angabe-geliefert", 4, [
        Turn("Wie hoch ist die Steuer auf den Gewinn aus meinem Verkauf der Wohnung?", outcome="clarification", c=(0, 0.69)),
        Turn("Gekauft 2010, verkauft 2024.", facts={"summary": ["Der Gewinn ist steuerfrei, weil mehr als zehn Jahre dazwischen liegen."], "claims": [("frist", "Die Frist beträgt zehn Jahre (§ 23 Abs. 1 Nr. 1 EStG).", "sourced")],
              "lacks": "", "penalty": 0, "evidence": "§ 23 Abs. 1 Nr. 1 EStG", "reply": "Der Gewinn ist **steuerfrei**: Zwischen Kauf und Verkauf liegen mehr als zehn Jahre.", "supplies": "Gekauft 2010, verkauft 2024."},
             c=(0, 1), has=["steuerfrei"], again=ALL)],
          {"summary": ["Das lässt sich nicht bestimmen: Kaufdatum und Verkaufsdatum fehlen."], "claims": [("steuer", "Die Steuer lässt sich nicht bestimmen: Kaufdatum und Verkaufsdatum fehlen.", "given")],
           "lacks": "Kaufdatum und Verkaufsdatum fehlen", "penalty": 0.5, "evidence": "", "reply": "Ohne die Daten nicht zu sagen.", "question": "Wie viele Jahre liegen zwischen Kauf und Verkauf?",
           "options": ["A mehr als zehn: der Gewinn ist steuerfrei", "B weniger als zehn, selbst bewohnt: meist steuerfrei", "C weniger als zehn, vermietet: voll steuerpflichtig"]}, lang="de", example=True,
          about="Die Agenten sagen, was fehlt; die Antwort liefert es, und sie werden noch einmal gefragt."),
    Panel("不足の情報を補う", 4, [
        Turn("この動詞の敬語を教えてください。", outcome="clarification", c=(0, 0.69)),
        Turn("「食べる」です。", facts={"summary": ["「食べる」の尊敬語は「召し上がる」である。"], "claims": [("尊敬語", "「食べる」の尊敬語は「召し上がる」である。", "sourced")], "lacks": "", "penalty": 0, "evidence": "『敬語の指針』文化審議会",
                                    "reply": "尊敬語は「召し上がる」、謙譲語は「いただく」です。", "supplies": "「食べる」です。"}, c=(0, 1), has=["召し上がる"], again=ALL)],
          {"summary": ["どの動詞かが書かれていないため、決められません。"], "claims": [("動詞", "どの動詞かが書かれていないため、敬語は決められない。", "given")], "lacks": "どの動詞か", "penalty": 0.5, "evidence": "", "reply": "動詞が必要です。",
           "question": "どの動詞の敬語ですか。", "options": ["A 食べる：召し上がる・いただく", "B 行く：いらっしゃる・伺う", "C 見る：ご覧になる・拝見する"]}, lang="ja"),
    corrected("correction-by-value", "en", "How do we roll out our web service without an outage?", "A2 is wrong: we run Kubernetes", "we run Kubernetes", True),
    corrected("korrektur-deutsch", "de", "Wie rollen wir unseren Webdienst ohne Ausfall aus?", "A2 ist falsch: wir nutzen Kubernetes", "wir nutzen Kubernetes"),
    corrected("corrección-española", "es", "¿Cómo desplegamos nuestro servicio web sin interrupción?", "A2 es incorrecto: usamos Kubernetes", "usamos Kubernetes"),
    corrected("訂正-日本語", "ja", "停止せずにウェブサービスを更新するにはどうすればよいですか。", "A2は間違いです。Kubernetesを使っています。", "Kubernetesを使っています"),
    corrected("correction-in-plain-words", "en", "How do we roll out our mail service without an outage?", "Assumption A2 does not hold, our cluster is Kubernetes", "our cluster is Kubernetes"),
    Panel("handles-stay", 4, [
        Turn("How do we roll out our chat service without an outage?", c=(0.7, 1), has=[r"A1\W[^\n]*one region", r"A2\W[^\n]*Swarm", r"A3\W[^\n]*100 requests"]),
        Turn("A2 is wrong: the chat runs on Kubernetes", facts={**KUBERNETES, "correction": ("A2", "the chat runs on Kubernetes")}, has=[r"A1\W[^\n]*one region", r"A3\W[^\n]*100 requests"], lacks=[r"A[12]\W[^\n]*version 1\.30"]),
        Turn("A3 is wrong: we have 5000 requests a second", facts={"correction": ("A3", "we have 5000 requests a second"), "ledger": [(REGION, "guess")]}, has=[r"A1\W[^\n]*one region"], lacks=[r"A3\W[^\n]*100 requests"],
             calls={"plan": (0, 1), "all": (2, 7)})], rollout(), about="Handles are the same over a whole lineage, whatever order the model gives."),
    Panel("unknown-handle-is-free", 4, [Turn("How do we roll out our shop without an outage?", c=(0.7, 1)),
                                        Turn("A9 is wrong", outcome="", loose=True, status=(200, 404, 409, 422), has=["A9"], checks=["free"])], rollout()),
    Panel("unbekannte-annahme", 4, [Turn("Wie rollen wir unseren Laden ohne Ausfall aus?", c=(0.7, 1)),
                                    Turn("A9 ist falsch", outcome="", loose=True, status=(200, 404, 409, 422), has=["A9"], calls={"all": (0, 1)}, facts={"correction": ("A9", "A9 ist falsch")})], rollout(), lang="de"),
    Panel("untouched-outputs-are-reused", 4, [
        Turn("How do we roll out our search service without an outage?", c=(0.7, 1)),
        Turn("A1 is wrong: it runs in three regions", facts={"correction": ("A1", "it runs in three regions"), "reply": "Update one region after the other, replica by replica."}, has=["region after the other"],
             again=["solver", "critic"], spared=["verifier"])], rollout()),
]
