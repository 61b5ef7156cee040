//! Checks the policy: caps, thresholds, weights, limits and deadlines.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Policy;
use super::checker::Check;
use super::file::{Limits, PolicyFile};
use super::shape::below;
use crate::domain::{Agent, CORE_AGENTS, Mode, ScoringPolicy, Thresholds, Usd};

/// The highest cap of a run, in US dollars.
const MAX_USD: f64 = 1_000_000.0;

/// Returns the daily limits that are set, with their names in the file.
fn each_day(limits: &Limits) -> Vec<(&'static str, Usd)> {
    let all = [
        ("dailyUsd", limits.daily_usd),
        ("userDailyUsd", limits.user_daily_usd),
        ("guildDailyUsd", limits.guild_daily_usd),
    ];
    let set = |(name, dollars): (_, Option<f64>)| Some((name, Usd::from_dollars(dollars?)));
    all.into_iter().filter_map(set).collect()
}

impl Check<'_> {
    pub(super) fn policy(&mut self) -> Policy {
        let p = &self.file().policy;
        let normal_max = self.cap("NORMAL_MAX_USD", p.normal_max_usd.unwrap_or(0.10));
        let deep_max = self.cap("DEEP_MAX_USD", p.deep_max_usd.unwrap_or(0.50));
        let tools_max = p.tools_max_usd.or(p.normal_max_usd).unwrap_or(0.10);
        let tools_max = self.cap("TOOLS_MAX_USD", tools_max);
        let has_caps = normal_max.is_some() && deep_max.is_some() && tools_max.is_some();
        let seconds = |given: Option<u64>, usual| Duration::from_secs(given.unwrap_or(usual));
        let (d, retry) = (&p.deadlines, &p.retry);
        let max_ms = retry.max_ms.unwrap_or(8000);
        // A value that cannot be used is a problem already. It hides no other.
        let policy = Policy {
            normal_max: normal_max.unwrap_or_default(),
            deep_max: deep_max.unwrap_or_default(),
            tools_max: tools_max.unwrap_or_default(),
            scoring: self.scoring(p),
            decisions: self.decisions(p),
            llm_confidence_ceiling: p.llm_confidence_ceiling.unwrap_or(0.8),
            cross_check: p.cross_check,
            speculate: p.speculate.modes(),
            disabled_agents: self.disabled_agents(&p.disabled_agents),
            limits: p.limits.clone(),
            call_timeout: seconds(d.call, 60),
            connect_timeout: seconds(d.connect, 10),
            ask_deadline: seconds(d.ask, 120),
            audit_deadline: seconds(d.audit, 180),
            deep_deadline: seconds(d.deep, 300),
            retry_attempts: retry.attempts.unwrap_or(4),
            retry_base: Duration::from_millis(retry.base_ms.unwrap_or(500.min(max_ms))),
            retry_max: Duration::from_millis(max_ms),
            breaker_failures: p.breaker.failures.unwrap_or(8),
            breaker_open: seconds(p.breaker.open_seconds, 15),
            clarification_window: 60 * seconds(p.clarification_minutes, 30),
            lease: seconds(p.lease_seconds, 30),
            actions: self.actions(&p.actions),
        };
        let Thresholds { tau_hard, tau_soft } = policy.scoring.thresholds;
        if tau_hard > tau_soft && self.are_sound(&["/policy/tauHard", "/policy/tauSoft"]) {
            let detail = format!("tauHard {tau_hard} is above tauSoft {tau_soft}");
            self.add("/policy/tauHard", detail);
        }
        if retry.base_ms.is_some_and(|base| base > max_ms) {
            self.add("/policy/retry/baseMs", format!("is above maxMs {max_ms}"));
        }
        let weights = &policy.scoring.weights;
        if CORE_AGENTS.iter().all(|it| weights.get(it) == Some(&0.0)) {
            let detail = "the weights of solver, critic and verifier are all 0: c_final would be 0";
            self.add("/policy/roleWeights", detail);
        }
        if has_caps {
            self.daily_limits(&policy);
        }
        self.deadlines_fit(&policy);
        policy
    }

    fn scoring(&mut self, p: &PolicyFile) -> ScoringPolicy {
        let usual = ScoringPolicy::default();
        let Thresholds { tau_hard, tau_soft } = usual.thresholds;
        ScoringPolicy {
            thresholds: Thresholds {
                tau_hard: p.tau_hard.unwrap_or(tau_hard),
                tau_soft: p.tau_soft.unwrap_or(tau_soft),
            },
            weights: self.role_weights(&p.role_weights),
            max_conflict_penalty: p.max_conflict_penalty.unwrap_or(usual.max_conflict_penalty),
            max_coverage_bonus: p.max_coverage_bonus.unwrap_or(usual.max_coverage_bonus),
            ask_threshold: p.ask_user_threshold.unwrap_or(usual.ask_threshold),
            calibration: p.calibration.clone(),
        }
    }

    /// Checks that the cap of each mode, and of a proposal, fits into the daily limits. Otherwise it
    /// would always be refused.
    fn daily_limits(&mut self, policy: &Policy) {
        let limits = &policy.limits;
        let proposer = &policy.actions.proposer;
        let asks = policy.actions.rules.enabled && proposer.enabled && proposer.provider.is_some();
        let caps = [
            (
                "ask and audit",
                policy.normal_max,
                "normalMaxUsd or NORMAL_MAX_USD",
            ),
            ("deep", policy.deep_max, "deepMaxUsd or DEEP_MAX_USD"),
            (
                "tool plans",
                policy.tools_max,
                "toolsMaxUsd or TOOLS_MAX_USD",
            ),
            ("a proposal", policy.actions.max, "actions.maxUsd"),
        ];
        let used = caps.into_iter().take(if asks { 4 } else { 3 });
        for (name, most) in each_day(limits) {
            for (what, cap, setting) in used.clone().filter(|(_, cap, _)| *cap > most) {
                let detail = format!(
                    "{most} a day never holds the cap of {what}, {cap}: raise it, or lower {setting}"
                );
                self.add(format!("/policy/limits/{name}"), detail);
            }
        }
        if limits.user_burst.is_some() && limits.user_per_minute.is_none() {
            let place = "/policy/limits/userBurst";
            self.add(place, "says nothing without userPerMinute");
        }
    }

    /// Checks that connecting fits into a call, and a call into a run of each mode.
    fn deadlines_fit(&mut self, policy: &Policy) {
        let [connect, call] = [policy.connect_timeout, policy.call_timeout].map(|it| it.as_secs());
        let [at_connect, at_call] = ["/policy/deadlines/connect", "/policy/deadlines/call"];
        if connect > call && self.are_sound(&[at_connect, at_call]) {
            let detail = format!("{connect} s do not fit into a call's {call} s");
            self.add(at_connect, detail);
        }
        let modes = [Mode::Ask, Mode::Audit, Mode::Deep].into_iter();
        let runs = modes.map(|mode| (mode.into_str(), policy.deadline(mode).as_secs()));
        let is_short = |(mode, run): &(&str, u64)| {
            call > *run && self.are_sound(&[&below("/policy/deadlines", mode)])
        };
        let too_short = runs.filter(is_short);
        let too_short: Vec<String> = too_short
            .map(|(mode, run)| format!("the {run} s of {mode}"))
            .collect();
        if !too_short.is_empty() && self.are_sound(&[at_call]) {
            let runs = too_short.join(", nor into ");
            let detail = format!("{call} s do not fit into a run: not into {runs}");
            self.add(at_call, detail);
        }
    }

    fn cap(&mut self, variable: &'static str, from_file: f64) -> Option<Usd> {
        let what = "an amount in US dollars from 0 to 1,000,000, such as 0.10";
        let dollars = self.number(&[variable], from_file, MAX_USD, what);
        dollars.map(Usd::from_dollars)
    }

    fn role_weights(&mut self, weights: &BTreeMap<String, f64>) -> BTreeMap<Agent, f64> {
        let mut known = BTreeMap::new();
        for (name, weight) in weights {
            let place = below("/policy/roleWeights", name);
            match name.parse::<Agent>() {
                Ok(agent) if weight.is_finite() && *weight >= 0.0 => {
                    known.insert(agent, *weight);
                }
                Ok(_) => self.add(place, "a weight is a number from 0 up"),
                Err(_) => self.add(place, "there is no such agent"),
            }
        }
        known
    }

    fn disabled_agents(&mut self, names: &[Option<String>]) -> BTreeSet<Agent> {
        let mut disabled = BTreeSet::new();
        for (i, name) in names.iter().enumerate() {
            let Some(name) = name else { continue };
            let place = format!("/policy/disabledAgents/{i}");
            match name.parse::<Agent>() {
                Ok(agent) if !agent.is_core() => {
                    disabled.insert(agent);
                }
                Ok(_) => self.add(place, "an agent of the core always runs"),
                Err(_) => self.add(place, format!("there is no agent {name:?}")),
            }
        }
        disabled
    }
}
