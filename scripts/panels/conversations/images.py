"""Point 8: an image that was not fetched lowers what rests on it."""

from panel import Panel, Turn

DEAD = {"filename": "gauge.png", "url": "https://127.0.0.1:9/gauge.png", "contentType": "image/png"}
NOWHERE = {"filename": "photo.jpg", "url": "https://images.invalid/photo.jpg", "contentType": "image/jpeg"}
DOT = {
    "filename": "dot.png",
    "contentType": "image/png",
    "url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
}


def blind(
    name: str,
    lang: str,
    message: str,
    image: dict,
    invented: str,
    question: tuple,
    mode: str = "ask",
    example: bool = False,
) -> Panel:
    """The question rests on the image alone; the models agree on what they cannot have seen."""
    turn = Turn(
        message, attachments=[image], outcome="clarification", c=(0, 0.69), checks=["told unseen"], lacks=["TL;DR"]
    )
    return Panel(
        name,
        8,
        [turn],
        {
            "type": "VISUAL_ANALYSIS",
            "optional": ["visual"],
            "answer": invented,
            "basis": "memory",
            "topic": "reading",
            "parts": ["the reading"],
            "evidence": invented,
            "claims": [("reading", f"The needle points at {invented}.", "memory")],
            "reply": f"**{invented}**.",
            "question": question[0],
            "options": list(question[1:]),
        },
        lang=lang,
        mode=mode,
        config="images",
        example=example,
        about=(
            "The image could not be fetched, and the models invent what it shows: that does not ship."
            if example
            else ""
        ),
    )


def aside(
    name: str, lang: str, message: str, image: dict, answer: str, claim: str, reply: str, mode: str = "ask"
) -> Panel:
    """The question can be answered without the image: it ships, and says that the image was not seen."""
    turn = Turn(message, attachments=[image], c=(0.7, 1), checks=["told unseen"], has=[image["filename"]])
    return Panel(
        name,
        8,
        [turn],
        {
            "answer": answer,
            "topic": "pressure",
            "claims": [("factor", claim, "sourced")],
            "reply": reply,
            "reasoning": "42 * 14.5 = 609",
            "evidence": "42 * 14.5 = 609",
            "parts": ["the value"],
        },
        lang=lang,
        mode=mode,
        config="images",
    )


PANELS = [
    blind(
        "image-alone-not-fetched",
        "en",
        "What does the gauge in this picture read?",
        DEAD,
        "42 bar",
        (
            "What does the gauge show, in your words?",
            "A green range: nothing has to be done",
            "B yellow range: the pressure has to be checked",
            "C red range: the pump has to stop",
        ),
        example=True,
    ),
    blind(
        "image-alone-no-host",
        "en",
        "Which fault does this photo of our pump show?",
        NOWHERE,
        "a cracked casing",
        (
            "Where does the water come out?",
            "A at the shaft: the seal is worn",
            "B at the flange: the gasket is worn",
            "C at the casing: it is cracked",
        ),
        "audit",
    ),
    blind(
        "bild-allein",
        "de",
        "Was zeigt das Manometer auf diesem Foto an?",
        DEAD,
        "42 bar",
        (
            "In welchem Bereich steht der Zeiger?",
            "A grün: es ist nichts zu tun",
            "B gelb: der Druck ist zu prüfen",
            "C rot: die Pumpe muss stehen",
        ),
    ),
    blind(
        "画像のみ",
        "ja",
        "この写真の計器は何を示していますか。",
        NOWHERE,
        "42バール",
        ("針はどの色にありますか。", "A 緑：何もしなくてよい", "B 黄：圧力を確認する", "C 赤：ポンプを止める"),
        "deep",
    ),
    aside(
        "image-aside",
        "en",
        "How much is 42 bar in psi, rounded to whole tens? The photo shows the gauge, for the record.",
        DEAD,
        "610 psi",
        "One bar is about 14.5 psi (NIST SP 811).",
        "42 bar are about **610 psi** (42 · 14.5 = 609).",
    ),
    aside(
        "bild-nebenbei",
        "de",
        "Wie viel sind 42 bar in psi, auf Zehner gerundet? Das Foto liegt nur zur Ablage bei.",
        NOWHERE,
        "610 psi",
        "Ein bar sind etwa 14,5 psi (NIST SP 811).",
        "42 bar sind rund **610 psi**.",
        "audit",
    ),
    Panel(
        "image-seen",
        8,
        [
            Turn(
                "What colour is the dot in this picture?",
                attachments=[DOT],
                c=(0.7, 1),
                has=["red"],
                checks=["visual sees"],
            )
        ],
        {
            "type": "VISUAL_ANALYSIS",
            "optional": ["visual"],
            "answer": "red",
            "basis": "tested",
            "topic": "dot colour",
            "claims": [("picture", "The picture is a single dot of one colour.", "tested")],
            "evidence": "The pixel is red.",
            "reply": "The dot is **red**.",
            "parts": ["the colour"],
        },
        config="images",
        about="The image came with the request itself: it is seen, and nothing is lowered.",
    ),
]
