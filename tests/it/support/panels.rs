//! The ready-made scenarios. Texts of units and options have no quotes or angle brackets, so that
//! they can be found in a request however it escapes them.

use serde_json::{Value, json};

use super::replies::{ReportBuilder, Scenario, report};

const CORE: [&str; 3] = ["solver", "critic", "verifier"];

pub(super) fn plan(task_type: &str, rounds: u8, shape: &str) -> Value {
    json!({
        "taskType": task_type, "agentsToRun": CORE, "rounds": rounds, "needsClarification": false,
        "clarificationQuestion": null, "outputShape": shape,
    })
}

pub(super) fn question(question: &str, options: [&str; 3]) -> Value {
    let lettered: Vec<String> = ["A", "B", "C"]
        .iter()
        .zip(options)
        .map(|(l, option)| format!("{l} {option}"))
        .collect();
    json!({"question": question, "options": lettered})
}

/// Returns a synthesis without plan steps. It relies on every agent's first two units.
pub(super) fn synthesis(
    task_type: &str,
    reply: &str,
    tldr: &str,
    assumption: &str,
    asks: &Value,
) -> Value {
    let used: Vec<String> = CORE
        .iter()
        .flat_map(|agent| [1, 2].map(|unit| format!("{agent}:u{unit}")))
        .collect();
    json!({
        "replyMarkdown": reply,
        "meta": {
            "taskType": task_type, "tldr": [tldr], "assumptions": [{"text": assumption, "kind": "given"}],
            "acceptanceTests": [], "planUnit": "minutes", "planSteps": [], "planAssumptions": [], "planRisks": [],
            "planConfidence": 0.5, "finalAnswer": "",
        },
        "audit": {
            "unitsUsed": used, "disagreements": [], "answerJustification": "", "conflictPenalty": 0.0, "coverageBonus": 0.08,
            "quarantineJustifications": [], "fallbackQuestion": asks,
        },
    })
}

/// Sets the final answer of a synthesis.
pub(super) fn answering(answer: &str, mut synthesis: Value) -> Value {
    synthesis["meta"]["finalAnswer"] = json!(answer);
    synthesis
}

fn estimate(steps: &Value) -> Value {
    json!({
        "planUnit": "minutes", "planSteps": steps, "planAssumptions": ["The work is done by one person in one sitting."],
        "planRisks": ["A slow download or a missing permission stretches the first step."], "planConfidence": 0.6,
    })
}

pub(super) fn scenario(
    message: &str,
    plan: Value,
    reports: [ReportBuilder; 3],
    synthesis: Value,
) -> Scenario {
    let question = synthesis["audit"]["fallbackQuestion"].clone();
    let reports = CORE
        .iter()
        .zip(reports)
        .map(|(agent, report)| (format!("r1/{agent}"), report.value()))
        .collect();
    let steps = json!([
        {"step": "Gather what is needed", "o": 2, "m": 5, "p": 10}, {"step": "Do the work", "o": 5, "m": 10, "p": 30},
        {"step": "Check the result", "o": 1, "m": 3, "p": 8},
    ]);
    let message = message.to_owned();
    Scenario {
        message,
        plan,
        reports,
        synthesis,
        question,
        estimate: estimate(&steps),
        right: vec![],
        answered: vec![],
    }
}

impl Scenario {
    /// Three agents agree on 100 degrees Celsius, each with well-supported claims.
    pub fn agreeing() -> Self {
        let solver = report("solver")
            .says("100 °C: at sea level water boils at 100 degrees Celsius.")
            .says("Sea level is taken as the standard atmosphere of 101.325 kPa.")
            .assumes("Sea level means the standard atmosphere, 101.325 kPa.")
            .assumes("The water is pure.")
            .because(
                "Water boils when its vapour pressure equals the pressure around it. Steam tables \
                     (IAPWS) give a vapour pressure of 101.4 kPa at 100 °C, and the standard atmosphere \
                     is 101.325 kPa, so both meet near 100 °C. Check by the Kelvin scale: 373.15 - \
                     273.15 = 100.",
            )
            .fails_if(
                "The question meant a place above sea level: a barometer reading well below 101 kPa \
                     shows it.",
            )
            .unit("boiling point", "At sea level, water boils at 100 °C.", &["key", "memory"])
            .unit(
                "vapour pressure",
                "The vapour pressure of water at 100 °C is 101.4 kPa (IAPWS steam tables).",
                &["key"],
            )
            .unit("kelvin check", "The boiling point is 373.15 K, and 373.15 - 273.15 = 100.", &["calculated"])
            .unit("boiling point", "100 °C", &["answer", "memory"])
            .sure(0.8);
        let critic = report("critic")
            .says("100 °C: the usual figure for water at sea level stands.")
            .says(
                "It shifts only with air pressure and dissolved salt, and both shifts are small at \
                     the coast.",
            )
            .assumes("Weather keeps the pressure within 3 kPa of the standard atmosphere.")
            .because(
                "I looked for what could overturn the figure. Pressure: near 100 °C the boiling \
                     point moves by 0.28 °C per kPa, so 3 kPa of weather move it by 3 * 0.28 = 0.84 °C. \
                     Salt: 10 g of table salt in 1 kg of water raise it by about 0.17 °C. Neither makes \
                     another whole figure the better answer.",
            )
            .fails_if(
                "At 1500 m the pressure is near 84.5 kPa and water boils at about 95 °C; altitude \
                     has to be ruled out.",
            )
            .unit("boiling point", "Water boils at 100 °C at sea level.", &["key", "memory"])
            .unit(
                "weather",
                "A change of 3 kPa in air pressure moves it by 3 * 0.28 = 0.84 °C.",
                &["key", "calculated"],
            )
            .unit("salt", "Ten grams of salt per kilogram raise it by roughly 0.17 °C.", &["key"])
            .unit("boiling point", "100 °C", &["answer", "memory"])
            .sure(0.75);
        let verifier = report("verifier")
            .says("100 °C, confirmed by conversion from Fahrenheit and by a named table.")
            .assumes("The standard pressure at sea level, one atmosphere, applies.")
            .because(
                "Two independent checks. First, handbooks list 212 °F: 212 - 32 = 180 and 180 * 5 / \
                     9 = 100. Second, the Antoine equation with A = 8.07131, B = 1730.63, C = 233.426 \
                     gives 760 mmHg, one atmosphere, at 100 °C.",
            )
            .fails_if("The Antoine constants hold from 1 °C to 100 °C only; above that another set is needed.")
            .unit("boiling point", "The boiling point of water at sea level is 100 °C.", &["key", "memory"])
            .unit("fahrenheit check", "212 °F converts as 212 - 32 = 180 and 180 * 5 / 9 = 100.", &["calculated"])
            .unit("antoine check", "The Antoine equation gives 760 mmHg at 100 °C.", &["calculated", "sourced"])
            .unit("boiling point", "100 °C", &["answer", "memory"])
            .sure(0.8);
        let asks = question(
            "At which pressure is the water to boil?",
            [
                "At the standard atmosphere, which gives 100 °C",
                "In the mountains at 1500 m, which gives about 95 °C",
                "In a pressure cooker at 200 kPa, which gives about 120 °C",
            ],
        );
        let reply = "Water boils at **100 °C** at sea level, where the air presses with one standard \
             atmosphere (101.325 kPa).\n\nThe figure is confirmed by conversion: 212 °F is (212 \
             - 32) * 5 / 9 = 100 °C. Weather moves it by less than 1 °C.";
        let tldr = "Water boils at 100 °C at sea level.";
        let assumes = "Sea level means the standard atmosphere, 101.325 kPa.";
        let synthesis = answering(
            "100 °C",
            synthesis("VERBAL_REASONING", reply, tldr, assumes, &asks),
        );
        let message = "What is the boiling point of water at sea level in Celsius?";
        scenario(
            message,
            plan("VERBAL_REASONING", 1, "ask"),
            [solver, critic, verifier],
            synthesis,
        )
    }

    /// An ordered plan of four steps. Its figures sum up to O 15, M 30, P 75 and E 35 minutes; the
    /// text claims other sums.
    pub fn howto() -> Self {
        let step = |report: ReportBuilder| {
            report
                .step(
                    "Install Docker Engine from Ubuntu's packages: `sudo apt-get update && sudo apt-get \
                         install -y docker.io docker-compose-v2`.",
                )
                .step(
                    "Copy `compose.yaml` and `.env` to `/srv/app` with `scp compose.yaml .env \
                         root@vps:/srv/app/`.",
                )
                .step("Start the service with `docker compose up -d` in `/srv/app`.")
                .step("Check it with `curl -fsS http://127.0.0.1:8080/health` and read `docker compose logs`.")
        };
        let solver = step(report("solver"))
            .says(
                "Install Docker, copy a compose file with its environment, start it with docker \
                     compose up -d, check its health.",
            )
            .assumes("The VPS runs Ubuntu 24.04 and you can log in over SSH as root.")
            .because(
                "Ubuntu 24.04 packages both docker.io and docker-compose-v2, so no further \
                     repository is needed. The restart policy in the compose file brings the container \
                     back after a reboot.",
            )
            .fails_if(
                "Port 8080 is taken: docker compose up then ends with the message that the address \
                     is in use.",
            )
            .unit("install", "Ubuntu 24.04 has the packages docker.io and docker-compose-v2.", &["memory", "tested"])
            .unit("start", "The command docker compose up -d starts the container in the background.", &["tested"])
            .unit("restart", "With restart: unless-stopped the container comes back after a reboot.", &["memory"]);
        let critic = step(report("critic"))
            .says(
                "The four steps, install, copy, start and check, suffice; the firewall is where \
                     they usually fail.",
            )
            .assumes(
                "Ubuntu 24.04 with root access over SSH, and the image is in a registry that the \
                     VPS can reach.",
            )
            .because(
                "Docker writes its own packet filter rules, so a published port bypasses ufw. \
                     Binding to 127.0.0.1:8080 keeps the service private until a reverse proxy stands in \
                     front.",
            )
            .fails_if("A published port is open to the internet although ufw denies it: check with `ss -ltn`.")
            .unit("firewall", "Ports published by Docker bypass ufw rules.", &["key", "memory"])
            .unit("start", "docker compose up -d starts the container in the background.", &["tested"])
            .unit("secrets", "The .env file should have mode 600, since it holds the keys.", &["key", "memory"]);
        let verifier = step(report("verifier"))
            .says(
                "Four steps suffice: install, copy, start, check; the health check proves that it \
                     worked.",
            )
            .assumes("The service answers GET /health on port 8080 and the VPS runs Ubuntu 24.04.")
            .because(
                "Each step has a test: `docker compose version` prints v2, `ls -l /srv/app` lists \
                     two files, `docker compose ps` says running, and curl with -f exits 0 only below \
                     status 400.",
            )
            .fails_if("curl exits 7 when nothing listens and 22 on a status of 400 or more.")
            .unit("check", "The command curl -fsS exits with 22 when the status is 400 or more.", &["tested"])
            .unit("install", "On Ubuntu 24.04 the packages are docker.io and docker-compose-v2.", &["memory", "tested"])
            .unit("state", "docker compose ps shows the state running once the container is up.", &["tested"]);
        let asks = question(
            "How is the container to be run?",
            [
                "With docker compose on the VPS, which is the four steps above",
                "With systemd and podman, which replaces the compose file by a unit",
                "On a small Kubernetes, which adds a cluster and a manifest",
            ],
        );
        let reply = "1. Install Docker: `sudo apt-get update && sudo apt-get install -y docker.io \
             docker-compose-v2`.\n2. Copy `compose.yaml` and `.env` to `/srv/app`.\n3. Start the \
             service: `docker compose up -d`.\n4. Check it: `curl -fsS \
             http://127.0.0.1:8080/health`.\n\nIn total this takes O 12, M 25, P 60 and E 28 \
             minutes.";
        let tldr = "Install Docker, copy the compose file, start it, check its health.";
        let assumes = "The VPS runs Ubuntu 24.04 with SSH access.";
        let mut synthesis = synthesis("TECHNICAL_EXECUTION", reply, tldr, assumes, &asks);
        let steps = json!([
            {"step": "Install Docker", "o": 5, "m": 10, "p": 20}, {"step": "Copy the files", "o": 5, "m": 10,  "p": 30},
            {"step": "Start the service", "o": 2, "m": 5, "p": 15}, {"step": "Check its health", "o": 3, "m": 5, "p": 10},
        ]);
        synthesis["meta"]["planSteps"] = steps.clone();
        synthesis["meta"]["planAssumptions"] = json!(["The image is built and pushed."]);
        synthesis["meta"]["planRisks"] = json!(["A slow mirror stretches the installation."]);
        synthesis["meta"]["planConfidence"] = json!(0.7);
        synthesis["meta"]["acceptanceTests"] =
            json!(["`curl -fsS http://127.0.0.1:8080/health` exits with 0."]);
        let message = "How do I deploy my container image to a fresh Ubuntu VPS with Docker?";
        let plan = plan("TECHNICAL_EXECUTION", 1, "ask");
        let estimate = estimate(&steps);
        Self {
            estimate,
            ..scenario(message, plan, [solver, critic, verifier], synthesis)
        }
    }

    /// All agents calculate rightly: 52.8.
    pub fn arithmetic() -> Self {
        let solver = report("solver")
            .says("52.8: 17% of 240 is 40.8, and 12 more make 52.8.")
            .because("0.17 * 240 = 40.8 and 40.8 + 12 = 52.8.")
            .fails_if("If the 12 were meant inside the percentage, 0.17 * 252 = 42.84 would be the result.")
            .unit("percentage", "17% of 240 is 40.8, as 0.17 * 240 = 40.8.", &["calculated"])
            .unit("result", "40.8 + 12 = 52.8.", &["key", "calculated"])
            .unit("result", "52.8", &["answer", "calculated"])
            .sure(0.8);
        let critic = report("critic")
            .says("52.8 is the only reading that the comma allows.")
            .assumes("The comma separates the percentage from the addition.")
            .because(
                "Split the percentage: 10% of 240 is 24, 7% of 240 is 16.8, and 24 + 16.8 = 40.8. \
                     Then 40.8 + 12 = 52.8.",
            )
            .fails_if("Rounding before the last step would give 53; nothing asks for rounding.")
            .unit("split", "24 + 16.8 = 40.8 is 17% of 240.", &["calculated"])
            .unit(
                "result",
                "The result is 40.8 + 12 = 52.8.",
                &["key", "calculated"],
            )
            .unit("result", "52.8", &["answer", "calculated"])
            .sure(0.8);
        let verifier = report("verifier")
            .says("52.8, and the way back confirms it.")
            .because("Backwards: 52.8 - 12 = 40.8 and 40.8 / 240 = 0.17, which is 17%.")
            .fails_if("A slip in the decimal point would show as 4.08 or 408 in the way back.")
            .unit(
                "reverse check",
                "40.8 / 240 = 0.17, so the percentage is right.",
                &["calculated", "tested"],
            )
            .unit(
                "result",
                "52.8 - 12 = 40.8, so the result 52.8 is right.",
                &["key", "calculated"],
            )
            .unit("result", "52.8", &["answer", "calculated"])
            .sure(0.8);
        let asks = question(
            "What is the percentage taken of?",
            [
                "Of 240 alone, which gives 52.8",
                "Of 240 plus 12, which gives 42.84",
                "Of 12 alone, which gives 242.04",
            ],
        );
        let reply = "**52.8**: 0.17 * 240 = 40.8, and 40.8 + 12 = 52.8.";
        let synthesis = synthesis(
            "VERBAL_REASONING",
            reply,
            "The result is 52.8.",
            "The percentage is taken of 240 alone.",
            &asks,
        );
        let synthesis = answering("52.8", synthesis);
        let message = "What is 17% of 240, plus 12?";
        scenario(
            message,
            plan("VERBAL_REASONING", 1, "ask"),
            [solver, critic, verifier],
            synthesis,
        )
    }

    /// As [`Scenario::arithmetic`], but the critic multiplies wrongly: 54.8.
    pub fn miscounted() -> Self {
        let mut scenario = Self::arithmetic();
        let critic = report("critic")
            .says("54.8: 17% of 240 is 42.8, and 12 more make 54.8.")
            .because("0.17 * 240 = 42.8 and 42.8 + 12 = 54.8.")
            .fails_if("A wrong product would carry over into the sum.")
            .unit(
                "percentage",
                "17% of 240 is 42.8, as 0.17 * 240 = 42.8.",
                &["calculated"],
            )
            .unit("result", "42.8 + 12 = 54.8.", &["key", "calculated"])
            .unit("result", "54.8", &["answer", "calculated"])
            .sure(0.8);
        scenario
            .reports
            .insert("r1/critic".to_owned(), critic.value());
        scenario.synthesis["audit"]["unitsUsed"] =
            json!(["solver:u1", "solver:u2", "verifier:u1", "verifier:u2"]);
        scenario
    }
}
