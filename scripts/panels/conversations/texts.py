"""Long texts that several panels share: manuals written section by section, and logs that users paste."""

STATION = [
    (
        "strainer",
        "a pressure drop above 0.3 bar",
        "scale that came loose in the first weeks",
        "closing both valves and washing the basket",
        "every month",
    ),
    (
        "circulation pump",
        "a humming noise and less than 80 % of the rated flow",
        "a worn bearing or air in the volute",
        "venting first and listening at the bearing with a rod",
        "every quarter",
    ),
    (
        "control valve",
        "a supply temperature that swings by more than 4 K",
        "an integral time that is set too short",
        "doubling the integral time and watching one full day",
        "every heating season",
    ),
    (
        "plate heat exchanger",
        "a return temperature more than 8 K above the design",
        "fouling on the secondary side",
        "rinsing with 5 % citric acid against the direction of flow",
        "every two years",
    ),
    (
        "expansion vessel",
        "a pressure gauge that moves by more than 1 bar a day",
        "a lost gas charge",
        "isolating and draining the vessel and charging it to 0.3 bar below the fill pressure",
        "every year",
    ),
    (
        "safety valve",
        "drops at the outlet while the pressure is normal",
        "dirt on the seat",
        "lifting the valve once by hand and replacing it if it still drips",
        "every six months",
    ),
    (
        "heat meter",
        "a reading that stays still while the pump runs",
        "an empty battery or an air bubble at the sensor",
        "comparing the flow with the pump curve before the meter is sent in",
        "every month",
    ),
    (
        "outdoor sensor",
        "a value that is off by more than 2 K from a thermometer in the shade",
        "sun on the housing",
        "moving the sensor to the north wall, 2.5 m above the ground",
        "every autumn",
    ),
    (
        "dirt separator",
        "black water at the drain",
        "magnetite from a radiator that corrodes",
        "flushing until the water is clear and testing the oxygen in the fill water",
        "every quarter",
    ),
    (
        "domestic hot water tank",
        "less than 55 degrees at the return of the loop",
        "a loop that is not balanced",
        "closing the nearest branch by half a turn and measuring again after an hour",
        "every month",
    ),
    (
        "non-return valve",
        "warm pipes while the pump is off",
        "a spring that is stuck",
        "tapping the body and opening it if the warmth stays",
        "every year",
    ),
    (
        "pressure switch",
        "a pump that stops without a message",
        "a contact that is burnt",
        "measuring across the contact while the pressure is raised slowly",
        "every year",
    ),
    (
        "insulation",
        "a surface above 40 degrees",
        "wet wool behind a leaking flange",
        "opening the shell, drying the pipe and closing the leak before new wool goes in",
        "every two years",
    ),
    (
        "shut-off valves",
        "a spindle that does not turn by hand",
        "years without a movement",
        "moving each spindle by a quarter turn and back, never with a lever",
        "every spring",
    ),
    (
        "control cabinet",
        "a fan that runs all the time",
        "a filter mat full of dust",
        "replacing the mat and tightening every terminal with the mains off",
        "every six months",
    ),
    (
        "telemetry modem",
        "gaps in the record of the night",
        "an antenna cable with a sharp bend",
        "reading the signal strength and laying the cable in a wide curve",
        "every quarter",
    ),
]
OPENINGS = [
    "Look for {1} at the {0}.",
    "The {0} shows a fault by {1}.",
    "With the {0}, the first sign is {1}.",
    "Watch the {0} for {1}.",
]


def manual(count: int = 16, places: tuple[str, ...] = ("",)) -> list[str]:
    """An English manual in paragraphs of about 85 words, for one place or several; the last one closes it."""
    return [p for place in places for p in chapter(count, place)] + [
        "The whole round takes one fitter half a day; the closing line of the log is the signature of the person on duty."
    ]


def chapter(count: int, place: str) -> list[str]:
    out = []
    for number, item in enumerate(STATION[:count]):
        what, sign, cause, check, when = item
        out.append(
            f"**{what.capitalize()}{place and ', ' + place}.** "
            + OPENINGS[number % 4].format(what, sign)
            + f" The usual cause is {cause}. Begin by {check}; write the value before and after into the log, because a single value says little. "
            f"Do this {when}, and after every repair that emptied the circuit. If the sign is back within a week, the cause lies elsewhere: "
            f"then compare with the neighbouring station before a part is ordered, and note who decided it."
        )
    return out


TEILE = [
    (
        "Schmutzfänger",
        "ein Druckverlust über 0,3 bar",
        "gelöster Kalk aus den ersten Wochen",
        "beide Ventile schließen und den Korb auswaschen",
        "jeden Monat",
    ),
    (
        "Umwälzpumpe",
        "ein Brummen bei weniger als 80 % der Nennmenge",
        "ein verschlissenes Lager oder Luft im Gehäuse",
        "zuerst entlüften und das Lager mit einem Stab abhören",
        "jedes Quartal",
    ),
    (
        "Regelventil",
        "eine Vorlauftemperatur, die um mehr als 4 K schwankt",
        "eine zu kurze Nachstellzeit",
        "die Nachstellzeit verdoppeln und einen ganzen Tag beobachten",
        "vor jeder Heizperiode",
    ),
    (
        "Wärmeübertrager",
        "ein Rücklauf, der 8 K über der Auslegung liegt",
        "Ablagerungen auf der Hausseite",
        "gegen die Fließrichtung mit fünfprozentiger Zitronensäure spülen",
        "alle zwei Jahre",
    ),
    (
        "Ausdehnungsgefäß",
        "ein Druck, der am Tag um mehr als 1 bar wandert",
        "eine verlorene Gasfüllung",
        "absperren, entleeren und 0,3 bar unter dem Fülldruck vorspannen",
        "jedes Jahr",
    ),
    (
        "Sicherheitsventil",
        "Tropfen am Auslass bei normalem Druck",
        "Schmutz auf dem Sitz",
        "einmal von Hand anlüften und bei weiterem Tropfen ersetzen",
        "jedes Halbjahr",
    ),
    (
        "Wärmezähler",
        "eine Anzeige, die bei laufender Pumpe stillsteht",
        "eine leere Batterie oder eine Luftblase am Fühler",
        "die Menge mit der Pumpenkennlinie vergleichen",
        "jeden Monat",
    ),
    (
        "Außenfühler",
        "eine Abweichung von mehr als 2 K zum Schatten",
        "Sonne auf dem Gehäuse",
        "den Fühler an die Nordwand setzen, 2,5 m über dem Boden",
        "jeden Herbst",
    ),
    (
        "Schlammabscheider",
        "schwarzes Wasser am Ablass",
        "Magnetit aus einem rostenden Heizkörper",
        "spülen, bis das Wasser klar ist, und den Sauerstoff im Füllwasser messen",
        "jedes Quartal",
    ),
    (
        "Warmwasserspeicher",
        "weniger als 55 Grad am Rücklauf der Zirkulation",
        "ein nicht abgeglichener Strang",
        "den nächsten Strang um eine halbe Drehung schließen und nach einer Stunde messen",
        "jeden Monat",
    ),
    (
        "Rückschlagklappe",
        "warme Rohre bei stehender Pumpe",
        "eine hängende Feder",
        "gegen das Gehäuse klopfen und es öffnen, wenn die Wärme bleibt",
        "jedes Jahr",
    ),
    (
        "Druckschalter",
        "eine Pumpe, die ohne Meldung stehen bleibt",
        "ein verbrannter Kontakt",
        "am Kontakt messen, während der Druck langsam steigt",
        "jedes Jahr",
    ),
    (
        "Dämmung",
        "eine Oberfläche über 40 Grad",
        "nasse Wolle hinter einem undichten Flansch",
        "die Schale öffnen, das Rohr trocknen und das Leck schließen",
        "alle zwei Jahre",
    ),
    (
        "Schaltschrank",
        "ein Lüfter, der ständig läuft",
        "eine Filtermatte voller Staub",
        "die Matte ersetzen und bei abgeschaltetem Netz alle Klemmen nachziehen",
        "jedes Halbjahr",
    ),
]


def handbuch(count: int = 14, orte: tuple[str, ...] = ("",)) -> list[str]:
    """A German manual in paragraphs."""
    out = [
        f"**{was}{ort and ', ' + ort}.** Das erste Zeichen ist {zeichen}. Die häufigste Ursache: {ursache}. Das Vorgehen: {weg}; den Wert vorher und nachher ins Betriebsbuch schreiben, weil ein "
        f"einzelner Wert wenig sagt. Das ist {wann} fällig und nach jeder Reparatur, bei der der Kreis leer war. Kommt das Zeichen binnen einer Woche wieder, liegt die Ursache woanders: "
        f"dann mit der Nachbarstation vergleichen, bevor ein Teil bestellt wird."
        for ort in orte
        for was, zeichen, ursache, weg, wann in TEILE[:count]
    ]
    return out + [
        "Der ganze Rundgang dauert für eine Fachkraft einen halben Tag; am Ende steht die Unterschrift im Betriebsbuch."
    ]


文法 = [
    ("て形", "動作の連続や理由を表す", "「朝起きて、顔を洗う」"),
    ("たら", "一度きりの条件や発見を表す", "「駅に着いたら、電話してください」"),
    ("なら", "相手の話を受けて助言する", "「京都なら、秋がいいです」"),
    ("ば", "一般的な条件を表す", "「春になれば、桜が咲く」"),
    ("と", "必ず起こる結果を表す", "「このボタンを押すと、水が出る」"),
    ("ようにする", "努力して習慣を作ることを表す", "「毎日歩くようにしている」"),
    ("ことにする", "自分の決定を表す", "「明日から早く寝ることにした」"),
    ("はずだ", "根拠のある推量を表す", "「彼は今日休みのはずだ」"),
    ("わけだ", "納得した結論を表す", "「窓が開いている。寒いわけだ」"),
    ("ところだ", "動作の段階を表す", "「今、出かけるところだ」"),
    ("ばかりだ", "動作が終わって間もないことを表す", "「日本に来たばかりだ」"),
    ("ておく", "前もって行う準備を表す", "「切符を買っておく」"),
]


def 解説(count: int = 12) -> list[str]:
    """A Japanese grammar guide in paragraphs."""
    out = [
        f"**「{形}」**は{意味}形です。例えば{例}のように使います。似た形と置き換えられることもありますが、話し手の気持ちが変わるため、まず例文を声に出して読み、次に主語を変えて三つの文を作り、最後に"
        f"否定の形で同じ内容を言えるか確かめてください。会話では短い形が好まれ、書き言葉では接続の助詞を省かないほうが誤解を避けられます。"
        for 形, 意味, 例 in 文法[:count]
    ]
    return out + ["以上の形を一日に二つずつ練習すれば、一週間で全体を復習できます。"]


def readings(question: str, size: int, year: int = 2025) -> str:
    """An English question with a pasted log, of at most `size` characters."""
    lines, length = [question, ""], len(question) + 1
    for n in range(2000):
        line = f"{year}-{n // 24 % 12 + 1:02}-{n // 288 + 1:02} {n % 24:02}:00 supply {70 + n * 7 % 11}.{n % 10} C return {44 + n * 5 % 9}.{n * 3 % 10} C flow {11 + n % 3}.{n * 7 % 10} m3/h"
        if length + len(line) + 1 > size:
            break
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)


def protokoll(frage: str, size: int) -> str:
    """A German question with a pasted diary."""
    lines, length = [frage, ""], len(frage) + 1
    for n in range(2000):
        line = f"Schicht {n + 1}: Kessel {n % 4 + 1} lief ruhig, Vorlauf {70 + n * 7 % 11} °C, Rücklauf {44 + n * 5 % 9} °C; Störung {'keine' if n % 5 else 'kurzzeitig, quittiert von Müller'}."
        if length + len(line) + 1 > size:
            break
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)


def 日誌(質問: str, size: int) -> str:
    """A Japanese question with a pasted diary."""
    lines, length = [質問, ""], len(質問) + 1
    for n in range(2000):
        line = f"第{n + 1}回：往き{70 + n * 7 % 11}度、還り{44 + n * 5 % 9}度、流量{11 + n % 3}立方メートル、異常{'なし' if n % 5 else 'あり、係員が確認済み'}。"
        if length + len(line) + 1 > size:
            break
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)


def thorough(talk: int = 160, **facts) -> dict:
    """Facts with reports of the length that agents usually write; `talk` is the words of the reasoning."""
    reasoning = "The station was looked at part by part, in the order in which the water passes it. " * 2 + " ".join(
        manual(6)
    )
    return {
        "reasoning": " ".join(reasoning.split()[:talk]),
        "failures": [
            f"The {p[0]} hides the fault: then {p[1]} stays away and the log shows nothing." for p in STATION[:4]
        ],
        "assumptions": [
            "The station has two circuits and one meter.",
            "A fitter is on site on weekdays.",
            "The design flow is 12 m3/h.",
        ],
        "deliverables": [f"Check the {p[0]}: {p[3]}." for p in STATION[:8]],
        "claims": [
            (p[0], f"The {p[0]} shows a fault by {p[1]} (manual of the station).", "sourced") for p in STATION[:6]
        ],
        "evidence": "The manual of the station, chapter on faults.",
        "parts": ["what to check", "in which order", "how often"],
        **facts,
    }
