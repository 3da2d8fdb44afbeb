#!/usr/bin/env python3
"""Makes seeded.tsv: labelled pairs of names, the same for the same seed.

The file was made once, before any threshold of `kenning-entities` was set, and is not made again: a set
that follows the code measures nothing. The script is kept so that anybody can see how pairs came about.

    python3 generate.py > seeded.tsv
"""

import random

SEED = 20261115

GIVEN = """Aaron Abigail Adaeze Aisha Alejandro Amara Anders Andrea Anjali Antonio Arjun Astrid Beatriz Benjamin
Bogdan Brigitte Camila Carlos Cecilia Chidi Christopher Clara Claudia Connor Cristina Daniel Deborah Dmitri
Dominique Edith Eduardo Elena Emeka Emilia Esther Fatima Felipe Fiona Francesca Frederick Gabriela Genevieve
Giovanni Gustavo Hannah Harald Helena Hiroshi Ibrahim Ingrid Isabella Jacqueline Jamal Javier Jennifer Joaquin
Jonathan Josephine Kamala Katarzyna Kenji Kwame Lakshmi Leonardo Lorenzo Lucinda Magdalena Malcolm Manuel
Marcus Margaret Mehmet Melissa Mercedes Mireille Mohammed Natalia Nicholas Nikolai Obinna Olivia Oscar Padma
Patricia Penelope Priya Rafael Ramona Rebecca Ricardo Rosalind Samantha Sanjay Sebastian Sergei Shirin Sofia
Stefan Svetlana Takeshi Tamara Theodore Thomas Tobias Valentina Veronica Viktor Vivian Wanjiru Yasmin Yolanda
Zachary Zuzana""".split()

FAMILY = """Abernathy Adeyemi Alvarez Ankeny Arnaud Balakrishnan Barrientos Bergström Bianchi Blackwood Bouchard
Carrington Castellanos Chakraborty Cunningham Dabrowski Delacroix Dombrowski Eriksdotter Esposito Fairweather
Ferreira Fitzgerald Gallagher Galloway Gonzales Greenwood Grünewald Gutierrez Hathaway Henderson Hoffmann
Holloway Ivanova Jayawardena Johansson Kaczmarek Karlsson Kowalczyk Krishnamurthy Lagerfeld Lindqvist Livingston
MacAllister Mbeki McCullough Montgomery Moreau Mukherjee Nakamura Ndiaye Nikolaidis Novotny Obermeyer Okonkwo
Oliveira Ostrowski Papadakis Pemberton Petrosyan Quintero Ramanathan Rasmussen Rutherford Santorini Schneider
Severson Shimizu Silverman Soriano Stefanidis Sutherland Takahashi Tchaikovsky Thorsen Underwood Valenzuela
Vandermeer Villanueva Wadsworth Westerberg Whitaker Winterbourne Yamamoto Zawadzki Zimmerman""".split()

NICKNAMES = """William:Bill William:Will Robert:Bob Robert:Rob Richard:Dick Richard:Rick Margaret:Peggy
Margaret:Maggie Elizabeth:Liz Elizabeth:Betty Katherine:Kate James:Jim John:Jack Edward:Ted Edward:Ed
Charles:Chuck Michael:Mike Thomas:Tom Joseph:Joe Daniel:Dan Samuel:Sam Alexander:Alex Benjamin:Ben
Christopher:Chris Nicholas:Nick Patricia:Pat Jennifer:Jenny Rebecca:Becky Deborah:Debbie Susan:Sue Timothy:Tim
Anthony:Tony Matthew:Matt Andrew:Andy Steven:Steve""".split()

ACCENTED = """José García|Jose Garcia;Zoë Brontë|Zoe Bronte;Renée Dubois|Renee Dubois;Jürgen Müller|Jurgen Muller
Jürgen Möller|Juergen Moeller;Łukasz Wójcik|Lukasz Wojcik;Søren Ågård|Soren Agard;Björn Ström|Bjorn Strom
Tomáš Dvořák|Tomas Dvorak;Ngũgĩ wa Thiong'o|Ngugi wa Thiong'o;Ana Conceição|Ana Conceicao
Şebnem Yılmaz|Sebnem Yilmaz;Håkan Nyström|Hakan Nystrom;Mária Kovács|Maria Kovacs
Nguyễn Văn Hùng|Nguyen Van Hung;Đặng Thị Lan|Dang Thi Lan;Ștefan Ionescu|Stefan Ionescu
Lech Wałęsa|Lech Walesa;François Lefèvre|Francois Lefevre;Íñigo Núñez|Inigo Nunez;Jörg Groß|Joerg Gross
Beyza Özgür|Beyza Ozgur;Žofie Čermáková|Zofie Cermakova;Siobhán Ní Bhriain|Siobhan Ni Bhriain
Kärt Põder|Kart Poder""".replace("\n", ";").split(";")

ALIKE_GIVEN = """Maria:Mario Daniel:Danielle Paul:Paula Carlo:Carla Julian:Julia Alexander:Alexandra Robert:Roberta
Henry:Henri Martin:Marvin Adrian:Adriana Gabriel:Gabriela Marin:Martin Aaron:Baron Emil:Emily Eric:Erica
Leon:Leona Michel:Michele Andre:Andrea Simon:Simone Francis:Frances Valentin:Valentina Ivan:Ivana Dennis:Denise
Patrick:Patricia Justin:Justine""".split()

ALIKE_FAMILY = """Anderson:Andrews Johnson:Johnston Peters:Petersen Hansen:Hanson Harris:Harrison Williams:Williamson
Richards:Richardson Roberts:Robertson Jansen:Johansen Martin:Martinez Brown:Browning Stein:Steiner Green:Greene
Wood:Woods Miller:Millar Murray:Murphy Marshall:Marsh Fisher:Fischer Ward:Warden Parker:Barker Mason:Jason
Bennett:Barnett Wells:Welsh Rogers:Rodgers Fernandez:Hernandez""".split()

PLACES = """Alberta Cascadia Catalonia Dalmatia Ghana Galicia Hokkaido Jamaica Kerala Leicester Manitoba Melbourne
Navarre Otago Patagonia Quebec Saskatchewan Tasmania Umbria Veracruz Westphalia Zanzibar Guelph Bologna
Uppsala""".split()
ALIKE_PLACES = """Austria:Australia Slovakia:Slovenia Niger:Nigeria Guinea:Guyana Iran:Iraq India:Indiana
Dominica:Dominicana Mali:Malawi Zambia:Gambia Latvia:Lithuania Oregon:Arizona Sweden:Switzerland""".split()
TOPICS = """Salmon Watershed Rainforest Coastal Mountain Prairie Estuary Heritage Biodiversity Agroforestry Climate
Housing Energy Literacy Fisheries Governance Restoration Pollinator Wetland Astronomy""".split()
KINDS = "Institute Foundation Network Association Trust Alliance Council Observatory Cooperative".split()
LEGAL = "Inc Inc. Ltd LLC GmbH".split()

NEAR = {
    "a": "sq", "b": "vn", "c": "xv", "d": "sf", "e": "wr", "f": "dg", "g": "fh", "h": "gj", "i": "uo",
    "j": "hk", "k": "jl", "l": "k", "m": "n", "n": "bm", "o": "ip", "p": "o", "q": "wa", "r": "et",
    "s": "ad", "t": "ry", "u": "yi", "v": "cb", "w": "qe", "x": "zc", "y": "tu", "z": "x",
}


def typo(rng, word):
    """One slip of the fingers; in one of twenty at the first letter."""
    at = 0 if rng.random() < 0.05 else rng.randrange(1, len(word))
    kind = rng.choice(["drop", "double", "swap", "near"])
    if kind == "drop":
        return word[:at] + word[at + 1 :]
    if kind == "double":
        return word[:at] + word[at] + word[at:]
    if kind == "swap":
        at = min(max(at, 1), len(word) - 2)
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    near = NEAR.get(word[at].lower())
    letter = rng.choice(near) if near else word[at]
    return word[:at] + (letter.upper() if word[at].isupper() else letter) + word[at + 1 :]


def with_typo(rng, name):
    words = name.split()
    long = [i for i, it in enumerate(words) if len(it) >= 5]
    at = rng.choice(long)
    for _ in range(20):
        words_new = words[:at] + [typo(rng, words[at])] + words[at + 1 :]
        if words_new != words:
            return " ".join(words_new)
    return name


def split(pair):
    return pair.split(":")


def main():
    rng = random.Random(SEED)
    rows = []

    def add(kind, category, a, b, verdict):
        pair = [a, b] if rng.random() < 0.5 else [b, a]
        row = "\t".join([kind, category, *pair, verdict])
        if row not in rows:
            rows.append(row)

    def person():
        return rng.choice(GIVEN), rng.choice(FAMILY)

    def two(values):
        return rng.sample(values, 2)

    for _ in range(48):
        name = " ".join(person())
        add("Person", "typo", name, with_typo(rng, name), "same")
    for i in range(22):
        given, family = person()
        middle = rng.choice(GIVEN)
        full = f"{given} {middle} {family}" if i % 2 else f"{given} {family}"
        short = [f"{given[0]}. {family}", f"{given} {middle[0]}. {family}"][i % 2]
        add("Person", "initials", full, short, "same")
    for pair in NICKNAMES:
        formal, short = split(pair)
        family = rng.choice(FAMILY)
        add("Person", "nickname", f"{formal} {family}", f"{short} {family}", "same")
    for pair in ACCENTED:
        add("Person", "diacritics", *pair.split("|"), "same")

    for pair in ALIKE_GIVEN:
        a, b = split(pair)
        family = rng.choice(FAMILY)
        add("Person", "alike people", f"{a} {family}", f"{b} {family}", "different")
    for pair in ALIKE_FAMILY:
        a, b = split(pair)
        given = rng.choice(GIVEN)
        add("Person", "alike people", f"{given} {a}", f"{given} {b}", "different")
    for _ in range(12):
        (a, b), family = two(GIVEN), rng.choice(FAMILY)
        add("Person", "alike people", f"{a} {family}", f"{b} {family}", "different")
        (a, b), given = two(FAMILY), rng.choice(GIVEN)
        add("Person", "alike people", f"{given} {a}", f"{given} {b}", "different")
    for _ in range(8):
        given, family = person()
        add("Person", "bare first name", given, f"{given} {family}", "different")
        other = rng.choice([it for it in GIVEN if it[0] != given[0]])
        add("Person", "other initial", f"{other[0]}. {family}", f"{given} {family}", "different")

    for _ in range(14):
        name = f"{rng.choice(PLACES)} {rng.choice(TOPICS)} {rng.choice(KINDS)}"
        add("Organization", "typo", name, with_typo(rng, name), "same")
    for _ in range(8):
        name = f"{rng.choice(PLACES)} {rng.choice(TOPICS)} {rng.choice(KINDS)}"
        add("Organization", "legal form", name, f"{name} {rng.choice(LEGAL)}", "same")
        a, b = two(TOPICS)
        where = rng.choice(PLACES)
        name = f"{where} {a} and {b} Trust"
        add("Organization", "small words", name, "The " + name.replace("and", "&"), "same")

    shapes = ["University of {}", "Bank of {}", "{} Wildlife Trust", "Central Museum of {}"]
    for pair in ALIKE_PLACES:
        a, b = split(pair)
        shape = rng.choice(shapes)
        add("Organization", "one word differs", shape.format(a), shape.format(b), "different")
    for _ in range(16):
        a, b = two(PLACES)
        shape = rng.choice(shapes)
        add("Organization", "one word differs", shape.format(a), shape.format(b), "different")
        (a, b), where, kind = two(TOPICS), rng.choice(PLACES), rng.choice(KINDS)
        add("Organization", "one word differs", f"{where} {a} {kind}", f"{where} {b} {kind}", "different")
    for _ in range(12):
        (a, b), where, topic = two(KINDS), rng.choice(PLACES), rng.choice(TOPICS)
        add("Organization", "other kind", f"{where} {topic} {a}", f"{where} {topic} {b}", "different")

    print("\n".join(["# type\tcategory\tname\tname\tverdict", *rows]))


main()
