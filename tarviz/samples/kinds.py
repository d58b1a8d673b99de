"""What the zoo's shards hold: a function for each kind of data set, which makes the record of a number as people store it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tarviz.looks import runs
from tarviz.samples import media
from tarviz.samples.sample_shard import Sample
from tarviz.samples.scenes import FOCAL, SHAPES, Scene, encode, npy

Maker: TypeAlias = Callable[[int], Sample]

VIEWS = ("front", "left", "rear", "right")
_ASKED = ("What is in the picture?", "How many shapes are there?", "Which one is nearest?")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def captions(number: int) -> Sample:
    """Pictures with alt texts as img2dataset writes them (LAION): jpg, txt, json; no class."""
    scene = Scene(number)
    similarity = round(float(scene.random.uniform(0.15, 0.45)), 4)
    facts: dict[str, Any] = {"caption": scene.caption, "url": f"https://example.com/{number}.jpg", "key": f"{number:09d}"}
    facts |= {"status": "success", "exif": "{}"}
    facts |= {"similarity": similarity, "width": scene.width, "height": scene.height, "punsafe": round(similarity / 9, 4)}
    return f"{number:09d}", {"jpg": encode(scene.picture()), "txt": scene.caption.encode(), "json": _json(facts)}


def coco(number: int) -> Sample:
    """Boxes (x, y, width, height), polygons and key points, a list of annotations per picture as COCO has them."""
    scene = Scene(1000 + number)
    found = []
    for at, thing in enumerate(scene.things):
        x, y, w, h = thing.box
        corners = [[x, y, 2], [x + w, y, 2], [x + w // 2, y + h, 1]]
        found.append({"id": number * 10 + at, "image_id": number, "category_id": thing.cls + 1, "bbox": [x, y, w, h], "area": w * h})
        found[-1] |= {"segmentation": [[int(n) for point in thing.polygon for n in point]], "iscrowd": 0}
        found[-1] |= {"keypoints": [n for corner in corners for n in corner], "num_keypoints": 3}
    categories = [{"id": at, "name": name, "supercategory": "shape"} for at, name in enumerate(SHAPES, 1)]
    facts = {"image_id": number, "width": scene.width, "height": scene.height, "annotations": found, "categories": categories}
    return f"val2017/{number:012d}", {"jpg": encode(scene.picture()), "json": _json(facts)}


def yolo(number: int) -> Sample:
    """Boxes as YOLO has them: a text of `class x y w h` lines, the middle and the size as shares of the picture."""
    scene = Scene(2000 + number)
    lines = []
    for thing in scene.things:
        x, y, w, h = thing.box
        middle = (x + w / 2) / scene.width, (y + h / 2) / scene.height
        lines.append(f"{thing.cls} {middle[0]:.5f} {middle[1]:.5f} {w / scene.width:.5f} {h / scene.height:.5f}")
    return f"images/{number:06d}", {"jpg": encode(scene.picture()), "txt": "\n".join(lines).encode()}


def voc(number: int) -> Sample:
    """Boxes as Pascal VOC has them: an XML of objects with xmin, ymin, xmax, ymax."""
    scene = Scene(3000 + number)
    objects = []
    for thing in scene.things:
        x, y, w, h = thing.box
        corners = f"<xmin>{x}</xmin><ymin>{y}</ymin><xmax>{x + w}</xmax><ymax>{y + h}</ymax>"
        objects.append(f"  <object><name>{thing.shape}</name><difficult>0</difficult><bndbox>{corners}</bndbox></object>")
    size = f"  <size><width>{scene.width}</width><height>{scene.height}</height><depth>3</depth></size>"
    text = "\n".join(["<annotation>", f"  <filename>2012_{number:06d}.jpg</filename>", size, *objects, "</annotation>"])
    return f"2012_{number:06d}", {"jpg": encode(scene.picture()), "xml": text.encode()}


def detections(number: int) -> Sample:
    """Boxes as detectors put them out (torchvision): corners x1, y1, x2, y2, names and scores in one JSON."""
    scene = Scene(4000 + number)
    boxes = [[x, y, x + w, y + h] for x, y, w, h in (thing.box for thing in scene.things)]
    scores = [round(float(score), 3) for score in scene.random.uniform(0.3, 1, len(boxes))]
    facts = {"boxes": boxes, "labels": [thing.name for thing in scene.things], "scores": scores}
    return f"n{number:06d}", {"png": encode(scene.picture(), "PNG"), "json": _json(facts)}


def segmentation(number: int) -> Sample:
    """Class numbers per pixel: a grey PNG of 0 … 4, which is black to the eye, and the names of the numbers."""
    scene = Scene(5000 + number)
    names = {str(at): name for at, name in enumerate(("background", *SHAPES))}
    return f"n{number:06d}", {"jpg": encode(scene.picture()), "seg.png": encode(scene.ids, "PNG"), "json": _json({"classes": names})}


def instances(number: int) -> Sample:
    """A mask of run lengths a thing, as SA-1B and COCO's crowds have them: the text of pycocotools, every third a plain list."""
    scene = Scene(5200 + number)
    found = []
    for at, thing in enumerate(scene.things):
        mask = scene.instances == at + 1
        form: Any = [] if at % 3 == 2 else ""
        found.append({"id": number * 10 + at, "bbox": list(thing.box), "area": int(mask.sum()), "predicted_iou": 0.9})
        found[-1] |= {"segmentation": runs.encode(mask, {"size": [], "counts": form})}
    facts = {"image": {"image_id": number, "width": scene.width, "height": scene.height}, "annotations": found}
    return f"sa_{number:06d}", {"jpg": encode(scene.picture()), "json": _json(facts)}


def masks(number: int) -> Sample:
    """Masks in colours (RGB, a colour a class) and as yes or no (0 and 255)."""
    table = np.array([(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (0, 0, 128)], np.uint8)
    scene = Scene(5500 + number)
    mask = np.uint8(255) * (scene.ids > 0)
    fields = {"jpg": encode(scene.picture()), "mask.png": encode(table[scene.ids], "PNG"), "alpha.png": encode(mask, "PNG")}
    return f"n{number:06d}", fields


def stereo(number: int) -> Sample:
    """Two cameras and depth: left.jpg, right.jpg, depth.png (16 bits, millimetres) and disp.npy (float32 pixels, NaN at the rim)."""
    scene = Scene(6000 + number)
    disparity = (FOCAL / scene.depth).astype(np.float32)
    disparity[:, :4] = np.nan
    fields = {"left.jpg": encode(scene.picture()), "right.jpg": encode(scene.picture(1.0))}
    fields |= {"depth.png": encode((scene.depth * 1000).astype(np.uint16), "PNG"), "disp.npy": npy(disparity)}
    return f"{number:06d}_10", fields


def wav(number: int) -> Sample:
    """Speech-like sound as WAV with a transcript."""
    samples, text = media.tune(number)
    return f"spk{number % 4}/utt{number:05d}", {"wav": media.wav(samples), "txt": text.encode()}


def flac(number: int) -> Sample:
    """Sound as FLAC with a JSON of text, speaker and duration (LibriSpeech-like)."""
    samples, text = media.tune(100 + number)
    facts = {"text": text, "speaker": f"spk{number % 4}", "duration": len(samples) / media.RATE, "sample_rate": media.RATE}
    return f"spk{number % 4}-{number:05d}", {"flac": media.sound(samples, "flac"), "json": _json(facts)}


def mp3(number: int) -> Sample:
    """Sound as MP3 with a sentence (Common Voice-like)."""
    samples, text = media.tune(200 + number)
    return f"common_voice_{number:07d}", {"mp3": media.sound(samples, "mp3"), "sentence.txt": text.encode()}


def video(number: int) -> Sample:
    """Clips with captions (WebVid-like): mp4, txt, json."""
    scene = Scene(7000 + number, (176, 144))
    frames = [scene.picture(step / 8) for step in range(16)]
    facts = {"caption": scene.caption, "fps": 8, "duration": 2.0, "frames": len(frames)}
    return f"clip{number:05d}", {"mp4": media.film(frames), "txt": scene.caption.encode(), "json": _json(facts)}


def text(number: int) -> Sample:
    """Documents for language models: a JSON of text and where it is from."""
    paragraphs = [Scene(8000 + number * 7 + at).caption + "." for at in range(1 + number % 6)]
    meta = {"source": ("web", "books", "code")[number % 3], "lang": ("en", "en", "de")[number % 3], "tokens": 9 * len(paragraphs)}
    return f"doc{number:07d}", {"json": _json({"id": number, "text": "\n\n".join(paragraphs), "meta": meta})}


def chat(number: int) -> Sample:
    """Conversations: turns with role and content, every third one in the words of ShareGPT, some with a picture."""
    scene = Scene(8500 + number)
    answers = (scene.caption + ".", f"There are {len(scene.things)}.", f"The {scene.things[-1].name}.")
    turns = [{"role": "system", "content": "You describe pictures in plain words."}]
    for asked, answer in list(zip(_ASKED, answers, strict=True))[: 1 + number % 3]:
        turns += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    names = {"system": "system", "user": "human", "assistant": "gpt"}
    shared = [{"from": names[turn["role"]], "value": turn["content"]} for turn in turns]
    fields = {"json": _json({"conversations": shared} if number % 3 == 2 else {"messages": turns})}
    return f"chat{number:05d}", {"jpg": encode(scene.picture()), **fields} if number % 4 == 0 else fields


def embeddings(number: int) -> Sample:
    """A vector of 64 numbers per picture, near each other where the nearest thing has the same shape."""
    middles = np.random.default_rng(9).normal(0, 1, (len(SHAPES), 64))
    scene = Scene(9000 + number, (96, 96))
    cls = scene.things[-1].cls
    vector = (middles[cls] + scene.random.normal(0, 0.25, 64)).astype(np.float32)
    return f"n{number:06d}", {"jpg": encode(scene.picture()), "emb.npy": npy(vector), "cls": b"%d" % cls, "txt": scene.caption.encode()}


def points(number: int) -> Sample:
    """Point clouds: float32 [n, 3] of a turned shape, and [n, 6] with colours, as LiDAR and CAD sets have them."""
    random = np.random.default_rng(9500 + number)
    around, up = random.uniform(0, 2 * np.pi, 2000), random.uniform(-1, 1, 2000)
    match number % 3:
        case 0:
            cloud = np.stack([np.cos(around) * np.sqrt(1 - up**2), np.sin(around) * np.sqrt(1 - up**2), up], axis=1)
        case 1:
            ring = 1 + up * 0.4
            cloud = np.stack([np.cos(around) * ring, np.sin(around) * ring, 0.4 * np.sin(5 * around)], axis=1)
        case _:
            cloud = np.stack([around / np.pi - 1, up, 0.3 * np.sin(2 * around) * np.cos(3 * up)], axis=1)
    cloud = (cloud + random.normal(0, 0.01, cloud.shape)).astype(np.float32)
    colours = (cloud - cloud.min(axis=0)) / (np.ptp(cloud, axis=0) + 1e-6)
    both = np.concatenate([cloud, colours], axis=1).astype(np.float32)
    return f"scan{number:05d}", {"xyz.npy": npy(cloud), "xyzrgb.npy": npy(both), "cls": b"%d" % (number % 3)}


def medical(number: int) -> Sample:
    """16 bits and floats: ct.png (0 … 4095), dose.tif (float32), a volume vol.npy (int16 [z, y, x]) and a report."""
    at = np.mgrid[-1:1:128j, -1:1:128j]
    random = np.random.default_rng(9800 + number)
    body = np.clip(1.2 - (at[1] / 0.8) ** 2 - (at[0] / 0.65) ** 2, 0, 1) ** 0.3
    y, x = random.uniform(-0.3, 0.3, 2)
    spot = np.exp(-((at[1] - x) ** 2 + (at[0] - y) ** 2) / 0.01)
    ct = (900 * body + 1400 * spot * (body > 0) + random.normal(0, 20, body.shape)).clip(0, 4095).astype(np.uint16)
    dose = (60 * np.exp(-((at[1] - x) ** 2 + (at[0] - y) ** 2) / 0.08)).astype(np.float32)
    volume = np.stack([(ct[::2, ::2] * share).astype(np.int16) - 1024 for share in np.sin(np.linspace(0.4, 2.7, 12))])
    report = f"A lesion of {8 + number % 9} mm, {'left' if x < 0 else 'right'} side."
    fields = {"ct.png": encode(ct, "PNG"), "dose.tif": encode(dose, "TIFF"), "vol.npy": npy(volume), "txt": report.encode()}
    return f"patient{number:04d}/series1", {**fields, "cls": b"%d" % (x < 0)}


def views(number: int) -> Sample:
    """Four cameras at one moment, with their calibration."""
    fields = {f"{name}.jpg": encode(Scene(number * 4 + at).picture()) for at, name in enumerate(VIEWS)}
    calibration = {name: {"f": [120.0, 120.0], "c": [120.0, 90.0], "yaw": 90 * at} for at, name in enumerate(VIEWS)}
    return f"log7/{1_700_000_000_000 + 100 * number}", {**fields, "calib.json": _json({"cameras": calibration, "weather": "dry"})}


def robotics(number: int) -> Sample:
    """Episodes: many small arrays a record (states, actions, rewards, forces by joint), a camera's first frame, an instruction."""
    random = np.random.default_rng(9900 + number)
    steps = 40 + number % 20
    arrays = {"action": random.normal(0, 1, (steps, 7)), "state": np.cumsum(random.normal(0, 0.1, (steps, 7)), axis=0)}
    arrays |= {"reward": np.linspace(0, 1, steps), "done": np.arange(steps) == steps - 1, "timestamp": np.arange(steps) / 10}
    arrays |= {f"force{joint}": random.normal(0, 1, (steps, 3)) for joint in range(7)}
    fields = {f"{name}.npy": npy(array.astype(np.float32) if array.dtype.kind == "f" else array) for name, array in arrays.items()}
    scene = Scene(number)
    facts = {"instruction": f"Put the {scene.things[-1].name} on the table", "steps": steps, "success": number % 3 > 0}
    return f"episode_{number:06d}", {"wrist.jpg": encode(scene.picture()), **fields, "meta.json": _json(facts)}


def keys(number: int) -> Sample:
    """Keys as they come: folders, other scripts, right to left, spaces, quotes, marks that turn text round, markup."""
    odd = ["données/été", "数据/训练", "данные/набор", "بيانات/تدريب", "a b/c d", 'it\'s/"q"', "rev\u202eesrever"]
    odd += ["<img src=x onerror=alert(1)>"]
    scene = Scene(number, (96, 96))
    label = ("Katze", "猫", "قطة", "<b>cat</b>")[number % 4]
    facts = _json({"label": label, "class": number % 4})
    return f"{odd[number % len(odd)]}/{number:04d}", {"jpg": encode(scene.picture()), "json": facts}


def missing(number: int) -> Sample:
    """Records that lack what others have: no class, no text, no picture, one with everything."""
    scene = Scene(number)
    fields = {"jpg": encode(scene.picture()), "cls": b"%d" % scene.things[-1].cls, "txt": scene.caption.encode()}
    for place, ext in enumerate(list(fields)):
        if (number + 1) % (5 + place) == 0:
            del fields[ext]
    return f"n{number:06d}", fields or {"txt": b""}


def damaged(number: int) -> Sample:
    """Payloads that are not what they are called: pictures cut short, empty or text, broken JSON, arrays that claim too much."""
    scene = Scene(number)
    jpg, facts = encode(scene.picture()), _json({"label": number % 3})
    vector = npy(np.arange(16, dtype=np.float32))
    broken = {2: jpg[: len(jpg) // 2], 4: b"", 6: b"<html>404 Not Found</html>", 8: bytes(reversed(jpg))}.get(number % 10, jpg)
    facts = b'{"label": ' if number % 10 == 5 else facts
    vector = vector[:-20] if number % 10 == 7 else vector
    return f"n{number:06d}", {"jpg": broken, "json": facts, "npy": vector}


KINDS: dict[str, Maker] = {
    make.__name__: make
    for make in (
        captions, coco, yolo, voc, detections, instances, segmentation, masks, stereo, wav, flac, mp3, video, text, chat, embeddings,
        points, medical, views, robotics, keys, missing, damaged,
    )
}  # fmt: skip
"""Every kind by its name, in the order of a gallery."""

MEDIA = ("flac", "mp3", "video")
"""Kinds that PyAV has to write (extra `media`)."""
