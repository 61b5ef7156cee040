//! Finds names in templates that nothing has: included files and variables. A template with such a
//! name parses, and fails in a run that has cost money already. Templates are read, not rendered,
//! because rendering may not end.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::Environment;
use minijinja::machinery::ast::{Expr, Stmt};
use minijinja::machinery::parse;

/// The names that a template's statements have.
#[derive(Debug, Default)]
struct Names {
    /// What it includes; of each inner list one name must exist.
    included: Vec<Vec<String>>,
    assigned: BTreeSet<String>,
}

/// Returns the variables of all templates: those that a caller gives them.
pub(super) fn variables(environment: &Environment<'_>) -> BTreeSet<String> {
    let templates = environment.templates();
    templates
        .flat_map(|(_, template)| template.undeclared_variables(false))
        .collect()
}

/// Returns the problems of the templates, each with the template's name. `templates` has also those
/// that do not parse. `given` has the variables that user parts are given; system parts have only
/// the globals.
pub(super) fn unknown_names(
    environment: &Environment<'_>,
    templates: &BTreeMap<String, String>,
    given: &BTreeSet<String>,
) -> Vec<(String, String)> {
    let parsed = environment.templates();
    let all: Vec<_> = parsed
        .map(|(name, template)| (name, names(template.source(), environment), template))
        .collect();
    // An included template sees the variables of the one that includes it.
    let inherited = all.iter().flat_map(|(_, names, _)| &names.assigned);
    let globals = environment.globals().map(|(name, _)| name.to_owned());
    let own: BTreeSet<String> = globals
        .chain(inherited.cloned())
        .chain(["loop".into()])
        .collect();
    let mut problems = vec![];
    for (name, names, template) in &all {
        let mut problem = |detail| problems.push(((*name).to_owned(), detail));
        let exists = |included: &String| templates.contains_key(included);
        for included in names.included.iter().filter(|it| !it.iter().any(exists)) {
            let included = included.join(" or ");
            problem(format!("includes {included}, which does not exist"));
        }
        let is_system = name.ends_with("#system");
        let used: BTreeSet<String> = template.undeclared_variables(false).into_iter().collect();
        for variable in used.difference(&own) {
            if is_system {
                problem(format!(
                    "uses the variable {variable} in its system part, which is given only goals"
                ));
            } else if !given.contains(variable) {
                problem(format!(
                    "uses the variable {variable}, which no prompt is given"
                ));
            }
        }
    }
    problems
}

/// Returns the names in the source of a template that was parsed before.
fn names(source: &str, environment: &Environment<'_>) -> Names {
    let mut names = Names::default();
    if let Ok(statement) = parse(source, "", environment.syntax().clone()) {
        names.add(&[statement]);
    }
    names
}

impl Names {
    fn add(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            match statement {
                Stmt::EmitExpr(_) | Stmt::EmitRaw(_) | Stmt::Do(_) => {}
                Stmt::Template(it) => self.add(&it.children),
                Stmt::ForLoop(it) => {
                    self.assign(&it.target);
                    self.add(&it.body);
                    self.add(&it.else_body);
                }
                Stmt::IfCond(it) => {
                    self.add(&it.true_body);
                    self.add(&it.false_body);
                }
                Stmt::WithBlock(it) => {
                    it.assignments
                        .iter()
                        .for_each(|(target, _)| self.assign(target));
                    self.add(&it.body);
                }
                Stmt::Set(it) => self.assign(&it.target),
                Stmt::SetBlock(it) => {
                    self.assign(&it.target);
                    self.add(&it.body);
                }
                Stmt::AutoEscape(it) => self.add(&it.body),
                Stmt::FilterBlock(it) => self.add(&it.body),
                Stmt::Block(it) => self.add(&it.body),
                Stmt::Import(it) => {
                    self.include(&it.expr);
                    self.assign(&it.name);
                }
                Stmt::FromImport(it) => {
                    self.include(&it.expr);
                    let names = it.names.iter();
                    names.for_each(|(name, other)| self.assign(other.as_ref().unwrap_or(name)));
                }
                Stmt::Extends(it) => self.include(&it.name),
                Stmt::Include(it) if it.ignore_missing => {}
                Stmt::Include(it) => self.include(&it.name),
                Stmt::Macro(it) => {
                    self.assigned.insert(it.name.to_owned());
                    it.args.iter().for_each(|name| self.assign(name));
                    self.add(&it.body);
                }
                Stmt::CallBlock(it) => self.add(&it.macro_decl.body),
            }
        }
    }

    fn assign(&mut self, target: &Expr<'_>) {
        match target {
            Expr::Var(it) => drop(self.assigned.insert(it.id.to_owned())),
            Expr::List(it) => it.items.iter().for_each(|item| self.assign(item)),
            Expr::Tuple(it) => it.items.iter().for_each(|item| self.assign(item)),
            _ => {}
        }
    }

    /// Adds what an expression includes, unless it is known only in a run.
    fn include(&mut self, name: &Expr<'_>) {
        let Some(value) = name.as_const() else { return };
        let one = value.as_str().map(|name| vec![name.to_owned()]);
        let several = || {
            let items = value.try_iter().ok()?;
            Some(items.map(|item| item.to_string()).collect())
        };
        self.included.extend(one.or_else(several));
    }
}
