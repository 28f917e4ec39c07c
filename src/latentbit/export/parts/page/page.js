// The page around the network: a pad to draw on, images from files, bars of classes, bits of layers.
"use strict";

const $ = (id) => document.getElementById(id);
const facts = JSON.parse($("facts").textContent);
const model = Uint8Array.from(atob($("model").textContent), (letter) => letter.charCodeAt(0));
const network = readNetwork(model.buffer);
const [channels, height, width] = network.input;
const gray = channels === 1;
const takesImages = gray || channels === 3;
const mean = network.mean || new Array(channels).fill(0), std = network.std || new Array(channels).fill(1);
const classes = network.classes || Array.from(network.layers[network.layers.length - 1].tensors.bias || [], (_, i) => String(i));

// A pad finer than the input gives smooth strokes; the network sees the mean of every block of pixels.
const fine = Math.max(width, height) <= 64 ? 4 : 1;
const pad = $("pad"), padContext = pad.getContext("2d", { willReadFrequently: true });
pad.width = width * fine;
pad.height = height * fine;
const fitted = Object.assign(document.createElement("canvas"), { width: pad.width, height: pad.height });
const fittedContext = fitted.getContext("2d", { willReadFrequently: true });
const seen = $("seen");
seen.width = width;
seen.height = height;
const stroke = Math.max(2, Math.round(Math.min(pad.width, pad.height) / 10));
let empty = true, isPhoto = false;

function showError(text) {
  $("error").textContent = text;
  $("error").hidden = !text;
}

function clear() {
  padContext.fillStyle = "#000";
  padContext.fillRect(0, 0, pad.width, pad.height);
  empty = true;
  isPhoto = false;
  showError("");
  schedule();
}

// What was drawn, moved and scaled so that it fills the frame, as digits of a data set do.
function fit() {
  const { data } = padContext.getImageData(0, 0, pad.width, pad.height);
  let left = pad.width, top = pad.height, right = -1, bottom = -1;
  for (let y = 0, i = 0; y < pad.height; y++)
    for (let x = 0; x < pad.width; x++, i += 4)
      if (data[i] > 40) {
        left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
      }
  if (right < 0) return pad;
  const w = right - left + 1, h = bottom - top + 1, scale = Math.min(pad.width / w, pad.height / h, 4);
  fittedContext.fillStyle = "#000";
  fittedContext.fillRect(0, 0, pad.width, pad.height);
  fittedContext.drawImage(pad, left, top, w, h, (pad.width - w * scale) / 2, (pad.height - h * scale) / 2, w * scale, h * scale);
  return fitted;
}

// The bytes that the network sees, channels innermost.
function pixels() {
  const source = gray && !isPhoto && $("fit").checked ? fit() : pad;
  const { data } = source.getContext("2d").getImageData(0, 0, pad.width, pad.height);
  const out = new Uint8ClampedArray(width * height * channels), area = fine * fine;
  for (let y = 0, at = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const sum = [0, 0, 0];
      for (let i = 0; i < area; i++) {
        const from = ((y * fine + Math.floor(i / fine)) * pad.width + x * fine + (i % fine)) * 4;
        for (let c = 0; c < 3; c++) sum[c] += data[from + c];
      }
      if (gray) out[at++] = (0.299 * sum[0] + 0.587 * sum[1] + 0.114 * sum[2]) / area;
      else for (let c = 0; c < channels; c++) out[at++] = sum[c] / area;
    }
  return out;
}

function normalise(bytes) {
  const image = new Float32Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) {
    const c = i % channels;
    image[i] = f(f(f(f(bytes[i]) / f(255)) - f(mean[c])) / f(std[c]));
  }
  return image;
}

const times = [];

function classify(image) {
  const began = performance.now();
  const values = runNetwork(network, image);
  times.push(performance.now() - began);
  if (times.length > 25) times.shift();
  return values;
}

function softmax(logits) {
  const top = Math.max(...logits), powers = Array.from(logits, (v) => Math.exp(v - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((v) => v / sum);
}

// Bars

const shown = Math.min(classes.length, 12);
const rows = Array.from({ length: shown }, () => {
  const row = document.createElement("li");
  row.innerHTML = '<span class="name"></span><span class="track"><span class="fill" style="display:block"></span></span><span class="number"></span>';
  $("bars").append(row);
  return { row, name: row.children[0], fill: row.children[1].firstChild, number: row.children[2] };
});

function showClasses(logits) {
  const shares = softmax(logits), order = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a]);
  const listed = shown === classes.length ? shares.map((_, i) => i) : order.slice(0, shown);
  listed.forEach((c, i) => {
    const { row, name, fill, number } = rows[i];
    name.textContent = classes[c];
    fill.style.width = empty ? "0" : `${100 * shares[c]}%`;
    number.textContent = empty ? "" : `${(100 * shares[c]).toFixed(1)} %`;
    row.classList.toggle("top", !empty && c === order[0]);
  });
  const best = empty ? "\u2013" : classes[order[0]];
  if ($("best").textContent !== best) $("best").textContent = best;
}

// Bits

const tiles = new Map();

function tileOf(layer, value) {
  const ideal = Math.ceil(Math.sqrt((value.channels * value.height) / value.width));
  let columns = ideal; // or a few more, if the last line is then full
  while (columns < 2 * ideal && value.channels % columns) columns++;
  if (value.channels % columns) columns = ideal;
  const lines = Math.ceil(value.channels / columns);
  const figure = document.createElement("figure"), canvas = document.createElement("canvas");
  canvas.width = columns * (value.width + 1) - 1;
  canvas.height = lines * (value.height + 1) - 1;
  const caption = document.createElement("figcaption");
  figure.append(canvas, caption);
  $("bits").append(figure);
  const context = canvas.getContext("2d");
  return { columns, caption, context, image: context.createImageData(canvas.width, canvas.height) };
}

function colour(name) {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

function showBits(values) {
  const lit = colour("--lit"), dark = colour("--dark");
  for (const layer of network.layers) {
    const value = values.get(layer.name);
    if (!value.bits || layer.op === "flatten") continue;
    if (!tiles.has(layer.name)) tiles.set(layer.name, tileOf(layer, value));
    const { columns, caption, context, image } = tiles.get(layer.name), words = wordsFor(value.channels);
    let plus = 0;
    for (let c = 0; c < value.channels; c++) {
      const left = (c % columns) * (value.width + 1), top = Math.floor(c / columns) * (value.height + 1);
      for (let p = 0; p < value.height * value.width; p++) {
        const minus = (value.data[p * words + (c >>> 5)] >>> (c & 31)) & 1, from = minus ? dark : lit;
        const at = ((top + Math.floor(p / value.width)) * image.width + left + (p % value.width)) * 4;
        image.data[at] = from[0];
        image.data[at + 1] = from[1];
        image.data[at + 2] = from[2];
        image.data[at + 3] = 255;
        plus += 1 - minus;
      }
    }
    context.putImageData(image, 0, 0);
    const n = value.channels * value.height * value.width;
    caption.textContent = `${layer.name}: ${value.channels} \u00d7 ${value.height} \u00d7 ${value.width}, ${Math.round((100 * plus) / n)} % +1`;
  }
}

// From the pad to the answer, once per frame

let scheduled = false;

function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(update);
}

function update() {
  scheduled = false;
  $("hint").hidden = !empty;
  const bytes = pixels(), values = classify(normalise(bytes));
  showClasses(values.get(network.layers[network.layers.length - 1].name).data);
  showBits(values);
  const small = seen.getContext("2d"), image = small.createImageData(width, height);
  for (let p = 0; p < width * height; p++) {
    for (let c = 0; c < 3; c++) image.data[4 * p + c] = bytes[p * channels + (gray ? 0 : c)];
    image.data[4 * p + 3] = 255;
  }
  small.putImageData(image, 0, 0);
  const sorted = [...times].sort((a, b) => a - b), median = sorted[sorted.length >> 1];
  $("latency").textContent = median < 0.1 ? "< 0.1 ms" : `${median.toFixed(median < 10 ? 1 : 0)} ms`;
}

// Drawing

let last = null;

function draw(x, y) {
  padContext.strokeStyle = gray ? "#fff" : $("ink").value;
  padContext.lineWidth = stroke;
  padContext.lineCap = padContext.lineJoin = "round";
  padContext.beginPath();
  padContext.moveTo(...(last || [x, y]));
  padContext.lineTo(x, y + (last ? 0 : 0.01));
  padContext.stroke();
  last = [x, y];
  empty = false;
  schedule();
}

function place(event) {
  const box = pad.getBoundingClientRect();
  return [((event.clientX - box.left) * pad.width) / box.width, ((event.clientY - box.top) * pad.height) / box.height];
}

pad.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  event.preventDefault();
  pad.setPointerCapture(event.pointerId);
  last = null;
  draw(...place(event));
});
pad.addEventListener("pointermove", (event) => {
  if (!pad.hasPointerCapture(event.pointerId)) return;
  for (const one of event.getCoalescedEvents ? [...event.getCoalescedEvents(), event] : [event]) draw(...place(one));
});
pad.addEventListener("pointerup", () => { last = null; });

// With keys: the pen is where it was left, in parts of the pad.
const pen = { x: 0.5, y: 0.5, down: false };

function showPen() {
  const mark = $("pen");
  mark.hidden = false;
  mark.style.left = `${100 * pen.x}%`;
  mark.style.top = `${100 * pen.y}%`;
  mark.classList.toggle("down", pen.down);
  if (pen.down) draw(pen.x * pad.width, pen.y * pad.height);
}

pad.addEventListener("keydown", (event) => {
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }, move = moves[event.key];
  if (move) {
    pen.x = Math.min(1, Math.max(0, pen.x + move[0] / 24));
    pen.y = Math.min(1, Math.max(0, pen.y + move[1] / 24));
  } else if (event.key === " ") {
    pen.down = !pen.down;
    last = null;
  } else if (event.key === "Delete" || event.key === "Backspace") {
    clear();
    pen.down = false;
  } else return;
  event.preventDefault();
  showPen();
});
pad.addEventListener("blur", () => { $("pen").hidden = true; });

// Images from files, the camera, a drop or the clipboard

async function load(file) {
  if (!file) return;
  try {
    const bitmap = await createImageBitmap(file);
    const short = Math.min(bitmap.width, bitmap.height), resize = network.source && network.source.resize;
    padContext.imageSmoothingQuality = "high";
    if (resize >= Math.max(width, height)) { // as in training: the short side to `resize`, then the centre
      const w = (width * short) / resize, h = (height * short) / resize;
      padContext.drawImage(bitmap, (bitmap.width - w) / 2, (bitmap.height - h) / 2, w, h, 0, 0, pad.width, pad.height);
    } else padContext.drawImage(bitmap, 0, 0, pad.width, pad.height);
    empty = false;
    isPhoto = true;
    showError("");
    schedule();
  } catch (error) {
    showError(`${file.name || "The image"} cannot be read as an image. Choose a JPEG, PNG or WebP file.`);
  }
}

$("clear").addEventListener("click", clear);
$("choose").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", (event) => { load(event.target.files[0]); event.target.value = ""; });
$("fit").addEventListener("change", schedule);
addEventListener("dragover", (event) => { event.preventDefault(); $("frame").classList.add("over"); });
addEventListener("dragleave", () => $("frame").classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  $("frame").classList.remove("over");
  load([...event.dataTransfer.files].find((file) => file.type.startsWith("image/")));
});
addEventListener("paste", (event) => load([...event.clipboardData.files].find((file) => file.type.startsWith("image/"))));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", schedule);

// What does not change

const thousands = (n) => n.toLocaleString("en");
$("about").textContent = `${facts.title}. ${classes.length} classes, images of ${width} \u00d7 ${height} pixels${gray ? " in gray" : ""}.`;
$("bytes").textContent = facts.bytes < 1e6 ? `${(facts.bytes / 1024).toFixed(1)} kB` : `${(facts.bytes / 1048576).toFixed(1)} MB`;
$("smaller").textContent = `${(facts.fp32_bytes / facts.bytes).toFixed(1)}\u00d7`;
$("macs").textContent = facts.binary_macs < 1e6 ? thousands(facts.binary_macs) : `${(facts.binary_macs / 1e6).toFixed(1)} M`;
$("hint").textContent = gray ? "Draw here" : "Drop or choose an image, or draw";
$("seen-text").textContent = `What the network sees: ${width} \u00d7 ${height}.`;
$("ink-label").hidden = gray;
$("fit-label").hidden = !gray;
pad.setAttribute("aria-label", `Pad of ${width} by ${height} pixels to draw on`);
window.latentbit = { network, runNetwork, classify, times, pixels, normalise };
clear();
