//! The cheapest sequence of actions that leads from what is true to what is wanted.
//!
//! The search is A*. What remains is estimated by the dearest unmet condition, at the price of the cheapest action
//! that can meet it alone, and by the sum over all unmet conditions where an action's price is shared by those that it
//! can meet: neither is more than the true price, so the first plan found is a cheapest one. Prices are whole
//! thousandths, so sums are exact and the same problem has the same plan everywhere. Of states that promise the same
//! price the one that is nearer to the goal is looked at first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// Something that is true, large or so named.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// True or false. What nobody mentioned is false.
    Bool(bool),
    /// A finite number. What nobody mentioned is 0.
    Number(f64),
    /// A word.
    Text(String),
}

/// What is true, by name.
pub type Facts = BTreeMap<String, Fact>;

/// What must hold of a fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Exactly this.
    Is(Fact),
    /// This number or more.
    AtLeast(f64),
    /// This number or less.
    AtMost(f64),
}

/// What an action does to a fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// It becomes this.
    Set(Fact),
    /// It grows by this, or shrinks.
    Add(f64),
}

/// Something that can be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Action {
    /// Its name.
    pub name: String,
    /// Its price, 0 or more.
    pub cost: f64,
    /// What must hold before it.
    pub needs: BTreeMap<String, Condition>,
    /// What holds after it.
    pub effects: BTreeMap<String, Effect>,
    /// What experience adds to its price, in thousandths: see [`experience`].
    pub surcharge: u64,
}

/// What is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Goal {
    /// Its name.
    pub name: String,
    /// The higher, the sooner.
    pub priority: f64,
    /// What must hold in the end.
    pub wants: BTreeMap<String, Condition>,
}

/// How much may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// States that are looked at.
    pub states_max: usize,
    /// Actions of a plan.
    pub actions_max: usize,
    /// Bytes of states that are remembered.
    pub bytes_max: usize,
    /// Facts and conditions that are compared, which bounds the time.
    pub comparisons_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            states_max: 50_000,
            actions_max: 100,
            bytes_max: 64 * 1024 * 1024,
            comparisons_max: 100_000_000,
        }
    }
}

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The places of its actions in the list that was given.
    pub actions: Vec<usize>,
    /// The sum of their prices, without what experience adds.
    pub cost: f64,
    /// How many states were looked at.
    pub n_states: usize,
}

impl Plan {
    /// How sure it is to succeed: the longer and dearer, the less, and at least 0.3.
    pub fn confidence(&self) -> f64 {
        let n = self.actions.len() as f64;
        (1.0 - 0.05 * n - 0.01 * self.cost).max(0.3)
    }
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplanned {
    /// No sequence of the actions leads there.
    Unreachable,
    /// More states than may be looked at.
    TooManyStates,
    /// The cheapest plan has more actions than a plan may have.
    TooLong,
}

/// What experience adds to an action's price, in thousandths: the more often it failed, the dearer, up to twice its
/// price; and one thousandth if it never succeeded, so that of two equal plans the one that worked is taken.
pub fn experience(cost: f64, n_succeeded: u64, n_failed: u64) -> u64 {
    let all = n_succeeded + n_failed;
    let failed = match all {
        0 => 0.0,
        _ => n_failed as f64 / (all + 1) as f64,
    };
    let dearer = thousandths(cost * failed);
    dearer + u64::from(n_succeeded == 0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is clamped before"
)]
fn thousandths(cost: f64) -> u64 {
    (cost * 1_000.0).round().clamp(0.0, 1e12) as u64
}

/// Whether a condition holds of a fact; `None` is a fact that nobody mentioned.
pub fn holds(condition: &Condition, fact: Option<&Fact>) -> bool {
    let number = match fact {
        None => Some(0.0),
        Some(Fact::Number(it)) => Some(*it),
        Some(Fact::Bool(it)) => Some(f64::from(u8::from(*it))),
        Some(Fact::Text(_)) => None,
    };
    match condition {
        Condition::AtLeast(least) => number.is_some_and(|it| it >= *least),
        Condition::AtMost(most) => number.is_some_and(|it| it <= *most),
        Condition::Is(Fact::Text(text)) => fact == Some(&Fact::Text(text.clone())),
        Condition::Is(Fact::Bool(wanted)) => number == Some(f64::from(u8::from(*wanted))),
        Condition::Is(Fact::Number(wanted)) => number == Some(*wanted),
    }
}

/// What holds after an action.
pub fn apply(facts: &mut Facts, action: &Action) {
    for (name, effect) in &action.effects {
        let fact = match effect {
            Effect::Set(fact) => fact.clone(),
            Effect::Add(more) => Fact::Number(
                more + match facts.get(name) {
                    Some(Fact::Number(it)) => *it,
                    Some(Fact::Bool(true)) => 1.0,
                    _ => 0.0,
                },
            ),
        };
        facts.insert(name.clone(), fact);
    }
}

/// Whether everything that is wanted holds.
pub fn all_hold(wants: &BTreeMap<String, Condition>, facts: &Facts) -> bool {
    wants.iter().all(|(name, it)| holds(it, facts.get(name)))
}

/// Finds a cheapest plan. A goal that holds already has the empty plan.
///
/// # Errors
/// Why there is none.
pub fn find_plan(
    facts: &Facts,
    wants: &BTreeMap<String, Condition>,
    actions: &[Action],
    limits: Limits,
) -> Result<Plan, Unplanned> {
    let problem = Problem::new(facts, wants, actions);
    problem.search(limits).map(|(actions_of, n_states)| Plan {
        cost: actions_of.iter().map(|&at| actions[at].cost).sum(),
        actions: actions_of,
        n_states,
    })
}

/// A value as one word: the bits of a number, or a text's number in the range of what is no number.
type Code = u64;
/// A state: the code of every fact, in the order of their names.
type Packed = Box<[Code]>;

const TEXT: Code = 0x7ff8_0000_0000_0001;

fn number_of(code: Code) -> Option<f64> {
    let number = f64::from_bits(code);
    (!number.is_nan()).then_some(number)
}

/// A zero without a sign, so that equal states have equal codes.
fn code_of(number: f64) -> Code {
    (number + 0.0).to_bits()
}

#[derive(Clone, Copy)]
enum Wanted {
    Is(Code),
    AtLeast(f64),
    AtMost(f64),
}

impl Wanted {
    fn holds(self, code: Code) -> bool {
        match self {
            Self::Is(wanted) => code == wanted,
            Self::AtLeast(least) => number_of(code).is_some_and(|it| it >= least),
            Self::AtMost(most) => number_of(code).is_some_and(|it| it <= most),
        }
    }
}

#[derive(Clone, Copy)]
enum Done {
    Set(Code),
    Add(f64),
}

struct Step {
    cost: u64,
    needs: Vec<(usize, Wanted)>,
    effects: Vec<(usize, Done)>,
}

/// A problem with names and texts replaced by numbers.
struct Problem {
    start: Packed,
    wants: Vec<(usize, Wanted)>,
    steps: Vec<Step>,
    /// For each want, the price of the cheapest action that can meet it alone; `None` if none can.
    cheapest: Vec<Option<u64>>,
    /// For each want, the least share of an action's price, if the action shares it among all that it can meet.
    shares: Vec<u64>,
}

impl Problem {
    fn new(facts: &Facts, wants: &BTreeMap<String, Condition>, actions: &[Action]) -> Self {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        let of_actions = actions
            .iter()
            .flat_map(|it| it.needs.keys().chain(it.effects.keys()));
        for name in facts.keys().chain(wants.keys()).chain(of_actions) {
            names.insert(name, 0);
        }
        for (at, slot) in names.values_mut().enumerate() {
            *slot = at;
        }
        let mut texts: HashMap<String, u64> = HashMap::new();
        let mut code = |fact: &Fact| match fact {
            Fact::Bool(it) => code_of(f64::from(u8::from(*it))),
            Fact::Number(it) => code_of(*it),
            Fact::Text(it) => {
                let next = texts.len() as u64;
                TEXT + *texts.entry(it.clone()).or_insert(next)
            }
        };
        let mut start = vec![code_of(0.0); names.len()];
        for (name, fact) in facts {
            start[names[name.as_str()]] = code(fact);
        }
        let mut conditions = |all: &BTreeMap<String, Condition>| -> Vec<(usize, Wanted)> {
            all.iter()
                .map(|(name, condition)| {
                    let wanted = match condition {
                        Condition::Is(fact) => Wanted::Is(code(fact)),
                        Condition::AtLeast(it) => Wanted::AtLeast(*it),
                        Condition::AtMost(it) => Wanted::AtMost(*it),
                    };
                    (names[name.as_str()], wanted)
                })
                .collect()
        };
        let wants = conditions(wants);
        let needs: Vec<_> = actions.iter().map(|it| conditions(&it.needs)).collect();
        let steps: Vec<Step> = actions
            .iter()
            .zip(needs)
            .map(|(action, needs)| Step {
                cost: thousandths(action.cost) + action.surcharge,
                needs,
                effects: action
                    .effects
                    .iter()
                    .map(|(name, effect)| {
                        let done = match effect {
                            Effect::Set(fact) => Done::Set(code(fact)),
                            Effect::Add(it) => Done::Add(*it),
                        };
                        (names[name.as_str()], done)
                    })
                    .collect(),
            })
            .collect();
        let meets = |step: &Step, (slot, wanted): (usize, Wanted)| {
            step.effects.iter().any(|&(of, done)| {
                of == slot
                    && match done {
                        Done::Set(code) => wanted.holds(code),
                        // From somewhere it leads there.
                        Done::Add(_) => true,
                    }
            })
        };
        let cheapest = wants
            .iter()
            .map(|&want| {
                let able = steps.iter().filter(|it| meets(it, want));
                able.map(|it| it.cost).min()
            })
            .collect();
        let n_met = |step: &Step| wants.iter().filter(|&&want| meets(step, want)).count() as u64;
        let share: Vec<u64> = steps.iter().map(|it| it.cost / n_met(it).max(1)).collect();
        let shares = wants
            .iter()
            .map(|&want| {
                let able = steps.iter().zip(&share).filter(|it| meets(it.0, want));
                able.map(|it| *it.1).min().unwrap_or_default()
            })
            .collect();
        Self {
            start: start.into(),
            wants,
            steps,
            cheapest,
            shares,
        }
    }

    /// At most what remains to be paid; `None` if the goal cannot be reached from here.
    fn estimate(&self, state: &[Code]) -> Option<u64> {
        let (mut most, mut sum) = (0, 0);
        let prices = self.cheapest.iter().zip(&self.shares);
        for (&(slot, wanted), (cheapest, share)) in self.wants.iter().zip(prices) {
            if !wanted.holds(state[slot]) {
                most = most.max((*cheapest)?);
                sum += share;
            }
        }
        Some(most.max(sum))
    }

    fn is_reached(&self, state: &[Code]) -> bool {
        self.wants.iter().all(|&(at, it)| it.holds(state[at]))
    }

    fn search(&self, limits: Limits) -> Result<(Vec<usize>, usize), Unplanned> {
        /// How a state was reached best so far.
        struct Seen {
            cost: u64,
            from: usize,
            by: usize,
            is_closed: bool,
        }
        let mut numbers: HashMap<Packed, usize> = HashMap::new();
        let mut states: Vec<Packed> = vec![self.start.clone()];
        let mut seen = vec![Seen {
            cost: 0,
            from: 0,
            by: usize::MAX,
            is_closed: false,
        }];
        numbers.insert(self.start.clone(), 0);
        let mut open = BinaryHeap::new();
        let Some(first) = self.estimate(&self.start) else {
            return Err(Unplanned::Unreachable);
        };
        open.push(Reverse((first, Reverse(0_u64), 0_usize)));
        // A state lies in the list and in the map, beside how it was reached and its place in the queue.
        let bytes_of_state = 2 * size_of_val(&*self.start) + 128;
        let comparisons_of_state = self.start.len() + self.wants.len();
        let mut n_states = 0;
        let mut n_comparisons = 0;
        while let Some(Reverse((_, Reverse(cost), at))) = open.pop() {
            if seen[at].is_closed || seen[at].cost != cost {
                continue;
            }
            seen[at].is_closed = true;
            n_states += 1;
            if self.is_reached(&states[at]) {
                let (mut plan, mut here) = (Vec::new(), at);
                while seen[here].by != usize::MAX {
                    plan.push(seen[here].by);
                    here = seen[here].from;
                }
                plan.reverse();
                return match plan.len() > limits.actions_max {
                    true => Err(Unplanned::TooLong),
                    false => Ok((plan, n_states)),
                };
            }
            if n_states >= limits.states_max || states.len() * bytes_of_state >= limits.bytes_max {
                return Err(Unplanned::TooManyStates);
            }
            for (by, step) in self.steps.iter().enumerate() {
                let state = &states[at];
                n_comparisons += step.needs.len() + 1;
                if !step.needs.iter().all(|&(slot, it)| it.holds(state[slot])) {
                    continue;
                }
                n_comparisons += comparisons_of_state;
                if n_comparisons >= limits.comparisons_max {
                    return Err(Unplanned::TooManyStates);
                }
                let mut next = state.clone();
                for &(slot, done) in &step.effects {
                    next[slot] = match done {
                        Done::Set(code) => code,
                        Done::Add(more) => {
                            code_of(number_of(next[slot]).unwrap_or_default() + more)
                        }
                    };
                }
                let Some(remains) = self.estimate(&next) else {
                    continue;
                };
                let cost = cost + step.cost;
                let number = match numbers.get(&next) {
                    Some(&known) if seen[known].cost <= cost => continue,
                    Some(&known) => known,
                    None => {
                        numbers.insert(next.clone(), states.len());
                        states.push(next);
                        seen.push(Seen {
                            cost: u64::MAX,
                            from: 0,
                            by: usize::MAX,
                            is_closed: false,
                        });
                        states.len() - 1
                    }
                };
                seen[number] = Seen {
                    cost,
                    from: at,
                    by,
                    is_closed: false,
                };
                open.push(Reverse((cost + remains, Reverse(cost), number)));
            }
        }
        Err(Unplanned::Unreachable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that differ and repeat.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: u64) -> u64 {
            // xorshift64*
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % n
        }
    }

    /// Two hundred facts that are wanted, each made true by an action of its own.
    fn independent(n: usize) -> (BTreeMap<String, Condition>, Vec<Action>) {
        let name = |at: usize| format!("g{at}");
        let yes = || Fact::Bool(true);
        let wants = (0..n).map(|at| (name(at), Condition::Is(yes()))).collect();
        let actions = (0..n).map(|at| Action {
            name: format!("a{at}"),
            cost: 1.0,
            effects: [(name(at), Effect::Set(yes()))].into(),
            ..Action::default()
        });
        (wants, actions.collect())
    }

    #[test]
    fn facts_that_do_not_depend_on_each_other_are_planned_one_after_another() {
        let (wants, actions) = independent(90);
        let plan = find_plan(&Facts::new(), &wants, &actions, Limits::default()).unwrap();
        assert_eq!(plan.actions.len(), 90);
        assert_eq!(plan.n_states, 91);
        let (wants, actions) = independent(200);
        let found = find_plan(&Facts::new(), &wants, &actions, Limits::default());
        assert_eq!(found, Err(Unplanned::TooLong));
    }

    #[test]
    fn a_search_without_end_ends_at_its_limits_of_memory_and_time() {
        // Counters that may be raised in any order, towards a sum that no action raises alone.
        let wants = (0..60)
            .map(|at| (format!("c{at}"), Condition::AtLeast(9.0)))
            .collect();
        let actions: Vec<Action> = (0..60)
            .map(|at| Action {
                name: format!("up{at}"),
                cost: 1.0,
                effects: [(format!("c{at}"), Effect::Add(1.0))].into(),
                ..Action::default()
            })
            .collect();
        let least = Limits::default();
        for limits in [
            Limits {
                bytes_max: 1_000_000,
                ..least
            },
            Limits {
                comparisons_max: 1_000_000,
                ..least
            },
            Limits {
                states_max: 500,
                ..least
            },
        ] {
            let found = find_plan(&Facts::new(), &wants, &actions, limits);
            assert_eq!(found, Err(Unplanned::TooManyStates), "{limits:?}");
        }
    }

    const N_FACTS: u64 = 6;

    fn random_problem(dice: &mut Dice) -> (Facts, BTreeMap<String, Condition>, Vec<Action>) {
        let name = |at: u64| format!("f{at}");
        let mut facts = Facts::new();
        for at in 0..N_FACTS {
            if dice.below(3) == 0 {
                facts.insert(name(at), Fact::Bool(true));
            }
        }
        let some = |dice: &mut Dice, most: u64| -> Vec<(u64, bool)> {
            let n = 1 + dice.below(most);
            let mut one = || (dice.below(N_FACTS), dice.below(3) > 0);
            (0..n).map(|_| one()).collect()
        };
        let condition = |(at, is): (u64, bool)| (name(at), Condition::Is(Fact::Bool(is)));
        let wants = some(dice, 4).into_iter().map(condition).collect();
        let n_actions = 1 + dice.below(9);
        let actions = (0..n_actions).map(|n| Action {
            name: format!("a{n}"),
            cost: dice.below(6) as f64 / 2.0,
            needs: some(dice, 3).into_iter().map(condition).collect(),
            effects: some(dice, 3)
                .into_iter()
                .map(|(at, is)| (name(at), Effect::Set(Fact::Bool(is))))
                .collect(),
            surcharge: dice.below(4) * 250,
        });
        let actions = actions.collect();
        (facts, wants, actions)
    }

    /// The price of a cheapest plan, by paying for every state again and again until nothing gets cheaper.
    fn brute_force(
        facts: &Facts,
        wants: &BTreeMap<String, Condition>,
        actions: &[Action],
    ) -> Option<u64> {
        let unpack = |bits: u64| -> Facts {
            let all = (0..N_FACTS).map(|at| (format!("f{at}"), Fact::Bool(bits >> at & 1 == 1)));
            all.collect()
        };
        let pack = |facts: &Facts| -> usize {
            let bits =
                (0..N_FACTS).filter(|at| facts.get(&format!("f{at}")) == Some(&Fact::Bool(true)));
            bits.map(|at| 1 << at).sum()
        };
        let n_states = 1 << N_FACTS;
        let mut price = vec![u64::MAX; n_states];
        price[pack(facts)] = 0;
        loop {
            let before = price.clone();
            for from in 0..n_states {
                if price[from] == u64::MAX {
                    continue;
                }
                for action in actions {
                    let mut state = unpack(from as u64);
                    if all_hold(&action.needs, &state) {
                        apply(&mut state, action);
                        let paid = price[from] + thousandths(action.cost) + action.surcharge;
                        let to = pack(&state);
                        price[to] = price[to].min(paid);
                    }
                }
            }
            if price == before {
                break;
            }
        }
        let reached = (0..n_states).filter(|&it| all_hold(wants, &unpack(it as u64)));
        let best = reached.map(|it| price[it]).min()?;
        (best < u64::MAX).then_some(best)
    }

    #[test]
    fn of_1_000_random_problems_every_plan_is_a_cheapest_one() {
        let seed = 0x5eed;
        let mut dice = Dice(seed);
        let (mut n_solved, mut n_unsolvable) = (0, 0);
        for n in 0..1_000 {
            let (facts, wants, actions) = random_problem(&mut dice);
            let expected = brute_force(&facts, &wants, &actions);
            let found = find_plan(&facts, &wants, &actions, Limits::default());
            let shown = format!("problem {n} of seed {seed:#x}: {facts:?} {wants:?} {actions:#?}");
            match (found, expected) {
                (Ok(plan), Some(expected)) => {
                    let mut state = facts.clone();
                    let mut paid = 0;
                    for &at in &plan.actions {
                        assert!(all_hold(&actions[at].needs, &state), "{shown}");
                        apply(&mut state, &actions[at]);
                        paid += thousandths(actions[at].cost) + actions[at].surcharge;
                    }
                    assert!(all_hold(&wants, &state), "{shown}");
                    assert_eq!(paid, expected, "{shown}");
                    n_solved += 1;
                }
                (Err(Unplanned::Unreachable), None) => n_unsolvable += 1,
                (found, expected) => panic!("{found:?} and not {expected:?}: {shown}"),
            }
        }
        // Neither kind is so rare that nothing was tested.
        assert!(
            n_solved > 200 && n_unsolvable > 100,
            "{n_solved} {n_unsolvable}"
        );
    }

    #[test]
    fn a_goal_that_holds_has_the_empty_plan_and_one_that_nothing_leads_to_has_none() {
        let facts: Facts = [("a".to_owned(), Fact::Bool(true))].into();
        let is = |name: &str| -> BTreeMap<String, Condition> {
            [(name.to_owned(), Condition::Is(Fact::Bool(true)))].into()
        };
        let plan = find_plan(&facts, &is("a"), &[], Limits::default()).unwrap();
        assert_eq!((plan.actions, plan.cost), (Vec::new(), 0.0));
        let none = find_plan(&facts, &is("b"), &[], Limits::default());
        assert_eq!(none, Err(Unplanned::Unreachable));
    }

    #[test]
    fn a_counter_without_end_stops_at_the_limit() {
        let count = Action {
            name: "count".to_owned(),
            cost: 1.0,
            effects: [("n".to_owned(), Effect::Add(1.0))].into(),
            ..Action::default()
        };
        let wants = [("n".to_owned(), Condition::AtMost(-1.0))].into();
        let limits = Limits {
            states_max: 100,
            actions_max: 10,
            ..Limits::default()
        };
        let found = find_plan(&Facts::new(), &wants, std::slice::from_ref(&count), limits);
        assert_eq!(found, Err(Unplanned::TooManyStates));
        let wants = [("n".to_owned(), Condition::AtLeast(11.0))].into();
        let found = find_plan(&Facts::new(), &wants, &[count], limits);
        assert_eq!(found, Err(Unplanned::TooLong));
    }

    #[test]
    fn of_two_equal_ways_the_one_that_worked_is_taken_and_one_that_fails_is_avoided() {
        let way = |name: &str, cost: f64, succeeded, failed| Action {
            name: name.to_owned(),
            cost,
            effects: [("done".to_owned(), Effect::Set(Fact::Bool(true)))].into(),
            surcharge: experience(cost, succeeded, failed),
            ..Action::default()
        };
        let wants = [("done".to_owned(), Condition::Is(Fact::Bool(true)))].into();
        let chosen = |ways: &[Action]| {
            let plan = find_plan(&Facts::new(), &wants, ways, Limits::default()).unwrap();
            ways[plan.actions[0]].name.clone()
        };
        assert_eq!(
            chosen(&[way("new", 2.0, 0, 0), way("known", 2.0, 3, 0)]),
            "known"
        );
        assert_eq!(
            chosen(&[way("bad", 2.0, 1, 9), way("dear", 3.0, 1, 0)]),
            "dear"
        );
        assert_eq!(
            chosen(&[way("once", 2.0, 9, 1), way("dear", 3.0, 9, 0)]),
            "once"
        );
    }
}
