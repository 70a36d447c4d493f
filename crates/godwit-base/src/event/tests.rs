use super::*;
use crate::{event_group, event_words, events};

event_words! {
    /// A light.
    enum Light {
        /// Stop.
        Red = "red",
        /// Go.
        Green = "green",
    }
}

event_group! {
    /// A place.
    struct Place<'a> {
        /// The name of the street.
        street: &'a str,
        /// The number in it.
        number: Option<u32>,
    }
}

events! {
    /// What happens in a town.
    enum TownEvent<'a> in "town", kinds TownEventKind {
        /// A light changed.
        LightChanged = "light_changed", Core {
            /// Where.
            place: Place<'a>,
            /// To what.
            light: Light,
            /// After how long.
            after: Duration,
        }
        /// It rains.
        Rain = "rain", Extra {}
        /// A convoy passes.
        Convoy = "convoy", Base {
            /// The plates of its cars.
            cars: &'a [u16],
            /// With horns.
            loud: bool,
            /// What it carries.
            load: Bytes<'a>,
        }
    }
}

/// Writes everything down in a line.
#[derive(Default)]
struct Line(String);

impl Visitor for Line {
    fn flag(&mut self, name: &str, value: bool) {
        self.0 += &format!("{name}={value} ");
    }
    fn number(&mut self, name: &str, value: u64) {
        self.0 += &format!("{name}={value} ");
    }
    fn duration(&mut self, name: &str, value: Duration) {
        self.0 += &format!("{name}={value:?} ");
    }
    fn text(&mut self, name: &str, value: &str) {
        self.0 += &format!("{name}={value} ");
    }
    fn bytes(&mut self, name: &str, value: &[u8]) {
        self.0 += &format!("{name}={value:x?} ");
    }
    fn group(&mut self, name: &str, fields: &dyn Fn(&mut dyn Visitor)) {
        self.0 += &format!("{name}{{ ");
        fields(self);
        self.0 += "} ";
    }
    fn list(&mut self, name: &str, items: &dyn Fn(&mut dyn Visitor)) {
        self.0 += &format!("{name}[ ");
        items(self);
        self.0 += "] ";
    }
}

fn line(event: &impl Event) -> String {
    let mut line = Line::default();
    event.visit(&mut line);
    format!("{}:{} {}", namespace(event), event.name(), line.0.trim_end())
}

fn namespace<E: Event>(_: &E) -> &'static str {
    E::NAMESPACE
}

#[test]
fn fields_are_shown_in_order_and_absent_ones_are_not() {
    let place = Place { street: "High Street", number: None };
    let event = TownEvent::LightChanged { place, light: Light::Green, after: Duration::from_millis(1500) };
    assert_eq!(line(&event), "town:light_changed place{ street=High Street } light=green after=1.5s");
    let place = Place { street: "Low Street", number: Some(7) };
    let event = TownEvent::LightChanged { place, light: Light::Red, after: Duration::ZERO };
    assert_eq!(line(&event), "town:light_changed place{ street=Low Street number=7 } light=red after=0ns");
    let event = TownEvent::Convoy { cars: &[3, 4], loud: true, load: Bytes(&[0xab]) };
    assert_eq!(line(&event), "town:convoy cars[ =3 =4 ] loud=true load=[ab]");
    assert_eq!(line(&TownEvent::Rain {}), "town:rain ");
}

#[test]
fn every_kind_has_a_bit_of_its_own() {
    let all = TownEventKind::ALL;
    assert_eq!(all.iter().map(|kind| kind.name()).collect::<Vec<_>>(), ["light_changed", "rain", "convoy"]);
    let bits: Vec<u64> = all.iter().map(|kind| kind.mask().bits()).collect();
    assert_eq!(bits, [1, 2, 4]);
    assert_eq!(TownEvent::Rain {}.kind(), TownEventKind::Rain);
    assert_eq!(TownEvent::Rain {}.importance(), Importance::Extra);
}

#[test]
fn masks_are_sets() {
    let (core, base) = (TownEventKind::at_least(Importance::Core), TownEventKind::at_least(Importance::Base));
    assert_eq!(core, TownEventKind::LightChanged.mask());
    assert_eq!(base, core.union(TownEventKind::Convoy.mask()));
    assert_eq!(TownEventKind::at_least(Importance::Extra).bits(), 7);
    assert!(base.intersects(core) && !base.intersects(TownEventKind::Rain.mask()));
    assert_eq!(base.without(core), TownEventKind::Convoy.mask());
    assert!(Mask::<TownEventKind>::default().is_empty());
}
