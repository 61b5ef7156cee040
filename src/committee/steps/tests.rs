//! What is a plan and what is not.

use super::*;

#[test]
fn ordered_actions_are_a_plan_and_ordered_facts_are_not() {
    let plan = "Do this:\n\n1. Install Docker.\n2. First, copy the image over. It is large.\n3. `docker run -d app`\n";
    assert_eq!(plan_steps(plan), ["Install Docker", "First, copy the image over", "docker run -d app"]);
    let facts = "The largest planets:\n\n1. Jupiter\n2. Saturn\n3. Uranus\n";
    assert_eq!(plan_steps(facts), Vec::<String>::new());
}

#[test]
fn a_plan_heading_makes_a_plan_of_a_short_list() {
    assert_eq!(plan_steps("## Rollout plan\n\n1. Canary\n2. Everyone\n").len(), 2);
    assert_eq!(plan_steps("## Notes\n\n- Canary\n- Everyone\n").len(), 0);
}

#[test]
fn steps_between_code_blocks_are_one_list() {
    let text = "1. Build it:\n\n```sh\nmake\n```\n\n2. Test it\n\n```sh\nmake test\n```\n\n3. Ship it\n";
    assert_eq!(plan_steps(text), ["Build it", "Test it", "Ship it"]);
}

#[test]
fn lines_that_say_step_are_steps() {
    assert_eq!(plan_steps("**Step 1:** Boil water\n\n**Step 2:** Add tea\n"), ["Boil water", "Add tea"]);
}

#[test]
fn other_languages_need_no_verbs() {
    let text = "So geht es mit dem Server und der Datenbank in der richtigen Reihenfolge weiter:\n\n\
        1. Zuerst die Datenbank sichern und das Ergebnis überprüfen.\n2. Danach den Dienst anhalten und neu bauen.\n\
        3. Am Ende alles wieder einschalten und beobachten.\n";
    assert_eq!(plan_steps(text).len(), 3);
}

#[test]
fn the_steps_of_all_phases_are_one_plan() {
    let text = "## Phase 1\n\n1. Install Docker\n2. Copy the image\n3. Start it\n\n## Phase 2\n\n\
        1. Add users\n2. Send invitations\n3. Watch the logs\n\n## Planets\n\n1. Jupiter\n2. Saturn\n";
    let steps = plan_steps(text);
    assert_eq!(steps.len(), 6);
    assert_eq!(steps[3], "Add users");
}

#[test]
fn a_bold_paragraph_is_a_heading_and_bold_words_are_not() {
    for heading in ["**Implementation plan**", "**Implementation plan:**", "**Implementation plan**:"] {
        assert_eq!(plan_steps(&format!("{heading}\n\n1. Canary\n2. Everyone\n")).len(), 2, "{heading}");
    }
    assert_eq!(plan_steps("The **implementation plan** has:\n\n1. Canary\n2. Everyone\n").len(), 0);
    let two = "**Rollout plan**\n\n1. Canary\n2. Everyone\n\n**Risks**\n\n1. Cost\n2. Time\n";
    assert_eq!(plan_steps(two), ["Canary", "Everyone"]);
    assert_eq!(plan_steps("## Plan\n\n**Backend**\n\n1. Canary\n2. Everyone\n").len(), 2);
}

#[test]
fn steps_in_code_are_not_the_texts_own() {
    assert_eq!(plan_steps("It prints:\n\n```\nStep 1: a\nStep 2: b\n```\n").len(), 0);
    assert_eq!(plan_steps("### Step 1\n\nBoil water.\n\n### Step 2\n\nAdd tea.\n"), ["Boil water", "Add tea"]);
}

#[test]
fn nested_lists_numbered_headings_days_and_tables_are_plans() {
    let nested = "- Setup\n  1. Install Docker\n  2. Pull the image\n  3. Run it\n";
    assert_eq!(plan_steps(nested), ["Install Docker", "Pull the image", "Run it"]);
    let headings = "### 1. Install Docker\nText.\n### 2. Pull the image\nText.\n### 3. Run it\nText.\n";
    assert_eq!(plan_steps(headings), ["Install Docker", "Pull the image", "Run it"]);
    assert_eq!(plan_steps("**Day 1:** Install it\n\n**Day 2:** Test it\n").len(), 2);
    let table = "## Implementation plan\n\n| step | who |\n| --- | --- |\n| Install | ops |\n| Test | dev |\n";
    assert_eq!(plan_steps(table).len(), 2);
    let rare =
        "1. Provision a VM on the provider.\n2. Harden SSH access on it.\n3. Bootstrap the node with cloud-init.\n";
    assert_eq!(plan_steps(rare).len(), 3);
}

#[test]
fn sub_steps_belong_to_their_step_and_statements_are_no_orders() {
    let steps = "1. Install it\n   - run the script\n   - check the log\n2. Test it\n3. Ship it\n";
    assert_eq!(plan_steps(steps).len(), 3);
    let facts =
        "1. Jupiter is the largest planet.\n2. Saturn has rings that are wide.\n3. Albert Einstein was a physicist.\n";
    assert_eq!(plan_steps(facts), Vec::<String>::new());
    let names = "1. Red apples from Chile\n2. The green one\n3. Paris, the capital of France\n";
    assert_eq!(plan_steps(names), Vec::<String>::new());
}

#[test]
fn an_item_that_is_numbered_twice_is_one_step() {
    let steps = plan_steps("1. 1. Install Docker:\n2. Create a Dockerfile:\n3. Run the container:");
    assert_eq!(steps, ["Install Docker", "Create a Dockerfile", "Run the container"]);
}

#[test]
fn whatever_stands_under_a_plans_title_is_a_plan() {
    let cases: [(&str, usize); 18] = [
        (
            "## Implementation plan\n\nFirst install Docker. Then configure the firewall. Finally deploy the container.",
            3,
        ),
        ("## Deployment plan\n\nInstall Docker on the host.\n\nConfigure the firewall.\n\nDeploy the container.", 3),
        ("## Plan\n\n- Install Docker and deploy", 1),
        ("# Roadmap\n\nQ1: build the API. Q2: launch. Q3: scale.", 3),
        ("**Implementation steps**\n\nFirst, install Docker. Second, configure the firewall. Finally, deploy it.", 3),
        ("## Rollout plan\n\n- Canary\n- Everyone", 2),
        ("## Checklist\n\n- [ ] Install Docker\n- [ ] Configure it\n- [ ] Deploy it", 3),
        ("Steps:\n- Install Docker\n- Configure the firewall\n- Deploy it", 3),
        ("Here is what to do.\n\nNext steps:\n\n- Install Docker\n- Deploy it", 2),
        ("## Steps to take\n\nInstall Docker; configure the firewall; deploy it.", 3),
        ("## The migration plan\n\nThe old server keeps running while the team moves one service a day.", 1),
        ("## Plan\n\n### Backend\n\nBuild the API.\n\n### Frontend\n\nBuild the pages.", 2),
        ("1. Docker installieren\n2. Firewall konfigurieren\n3. Container starten", 3),
        ("1. Docker installieren 2. Firewall konfigurieren 3. Container starten", 3),
        ("Do it in this order: 1. Install Docker 2. Configure the firewall 3. Deploy it. Then look at the log.", 3),
        ("## 30-day plan\n\nProvision a host.\n\nHarden it.", 2),
        ("## The Krakow plan\n\nFirst take the train. Then visit the castle.", 2),
        ("## Ablaufplan\n\nZuerst den Server einrichten. Dann die Daten umziehen.", 2),
    ];
    for (text, count) in cases {
        assert_eq!(plan_steps(text).len(), count, "{text}: {:?}", plan_steps(text));
    }
    assert_eq!(plan_steps(cases[6].0), ["Install Docker", "Configure it", "Deploy it"]);
}

#[test]
fn what_only_speaks_of_plans_is_none() {
    for text in [
        "Boil the water, add the tea and wait for three minutes.",
        "Install Docker. Configure the firewall. Deploy the container.",
        "## Implementation\n\nUse a hash map. Keep the lock short.",
        "## Pricing plan\n\nThe Pro plan costs 10 USD a month.",
        "## Benefits of the plan\n\nIt is cheap. It is fast.",
        "## Why this plan works\n\n- It is cheap\n- It is fast",
        "## Query plan\n\nThe planner chooses a sequential scan.",
        "## Plan\n\nNo plan is needed: it is one command.",
        "## What is the plan?\n\nIt depends on the host.",
        "The implementation plan has:\n\n- cost\n- risk\n- time",
        "The largest planets: 1. Jupiter 2. Saturn 3. Uranus",
        "`1. Install it 2. Run it 3. Check it`",
        "The capitals:\n\n1. Paris is the capital of France.\n2. Rome is often chosen\n3. Madrid is modern",
        "## The Marshall Plan\n\nCongress passed the act in 1948. It gave 13 billion dollars to Europe.",
        "## The Marshall Plan\n\n- 13 billion dollars\n- 16 countries",
        "## Timeline\n\n- 1914: the war begins\n- 1918: the war ends",
        "# Roadmap\n\n## Risks\n\nPrices rise. Time is short.",
    ] {
        assert_eq!(plan_steps(text), Vec::<String>::new(), "{text}");
    }
}
