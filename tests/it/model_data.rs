//! Compares the shipped model data with public price tables, which `scripts/price-tables.sh`
//! fetches. A price or a retirement date that is outdated fails here.

use std::collections::BTreeMap;

use conclave::config::{BUILT_IN, RETIREMENT_WARNING_DAYS, shipped_models};
use jiff::ZonedDateTime;
use serde_json::Value;

/// Returns the prices by model id, then by table.
fn tables() -> BTreeMap<String, BTreeMap<String, Value>> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the test's own switch, not the service's"
    )]
    let path = std::env::var("CONCLAVE_PRICE_TABLES")
        .expect("CONCLAVE_PRICE_TABLES names the file that scripts/price-tables.sh prints");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_price_matches_the_public_tables() {
    let tables = tables();
    let mut wrong = vec![];
    for (id, data) in shipped_models() {
        // A model on one's own server has no public price.
        if data.input == Some(0.0) {
            continue;
        }
        let Some(rows) = tables.get(id) else {
            wrong.push(format!("{id}: no table knows it"));
            continue;
        };
        for (table, row) in rows {
            let long = data.long_context.as_ref();
            let ours = [
                ("input", data.input),
                ("output", data.output),
                ("cacheRead", data.cache_read),
                ("cacheWrite", data.cache_write),
                ("above", long.map(|long| long.above as f64)),
                ("longInput", long.map(|long| long.input)),
            ];
            for (field, ours) in ours {
                let theirs = row[field].as_f64();
                // A table without a value proves nothing. A value that differs from ours, or that
                // we lack, is an error.
                if theirs.is_some_and(|theirs| ours.is_none_or(|ours| (ours - theirs).abs() > 1e-6))
                {
                    wrong.push(format!(
                        "{id}: {field} is {ours:?} here and {theirs:?} in {table}"
                    ));
                }
            }
            let retires = row["retires"].as_str();
            if retires.is_some_and(|day| {
                data.retires.map(|ours| ours.to_string()).as_deref() != Some(day)
            }) {
                wrong.push(format!(
                    "{id}: retires {:?} here and {retires:?} in {table}",
                    data.retires
                ));
            }
        }
    }
    assert_eq!(
        wrong, [""; 0],
        "correct src/config/models.json, with the day in `checked`"
    );
}

#[test]
fn no_model_of_a_shipped_config_retires_soon() {
    let tables = tables();
    let today = ZonedDateTime::now().date();
    for (name, text) in BUILT_IN {
        let file: Value = serde_json::from_str(text).unwrap();
        let mut roles: Vec<&Value> = file["models"]["roles"]
            .as_object()
            .unwrap()
            .values()
            .collect();
        while let Some(role) = roles.pop() {
            roles.extend(role.get("fallback"));
            let Some(id) = role["defaultModel"].as_str() else {
                continue;
            };
            let known = shipped_models()
                .get(id)
                .unwrap_or_else(|| panic!("{name}: {id} is not in models.json"));
            let public = tables.get(id).into_iter().flat_map(BTreeMap::values);
            let days = public
                .filter_map(|row| row["retires"].as_str()?.parse().ok())
                .chain(known.retires);
            for day in days {
                let left = (day - today).get_days();
                assert!(
                    left > RETIREMENT_WARNING_DAYS,
                    "{name}: {id} retires on {day}, in {left} days"
                );
            }
        }
    }
}
