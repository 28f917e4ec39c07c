// A packed network, read from the bytes of its .lbit file and run in plain JavaScript on typed arrays.
// Maps lie pixel by pixel, channels innermost. Signs are bits, 32 channels in a word, where 1 means -1: two rows of n
// signs that differ in d bits have the dot product n - 2 d. Floats are rounded to 32 bits after every operation, in the
// order of the engine's portable kernels, so that the logits are the same to the last bit.
"use strict";

const f = Math.fround;
const wordsFor = (n) => (n + 31) >>> 5;

function popcount(v) {
  v -= (v >>> 1) & 0x55555555;
  v = (v & 0x33333333) + ((v >>> 2) & 0x33333333);
  return Math.imul((v + (v >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

function halfToFloat(h) {
  const exponent = (h >> 10) & 31, fraction = h & 1023, sign = h & 0x8000 ? -1 : 1;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction);
}

// {input, mean, std, classes, source, layers}; every layer has its arrays in .tensors.
function readNetwork(buffer) {
  const headerBytes = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, headerBytes)));
  const network = JSON.parse(header.__metadata__.network);
  const kinds = { U64: Uint32Array, F32: Float32Array, F16: Uint16Array, I32: Int32Array, I8: Int8Array, U8: Uint8Array };
  const byName = new Map(network.layers.map((layer) => [layer.name, layer]));
  for (const layer of network.layers) layer.tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [begin, end] = entry.data_offsets, dot = name.lastIndexOf(".");
    const bytes = buffer.slice(8 + headerBytes + begin, 8 + headerBytes + end);
    const values = new kinds[entry.dtype](bytes);
    values.shape = entry.shape;
    values.half = entry.dtype === "F16";
    byName.get(name.slice(0, dot)).tensors[name.slice(dot + 1)] = values;
  }
  for (const layer of network.layers) prepare(layer);
  return network;
}

// Weights in the order in which they are used: taps, then channels.
function prepare(layer) {
  const t = layer.tensors;
  if (t.weight) {
    const [out, n, kh = 1, kw = 1] = t.weight.shape, weight = new Float32Array(t.weight.length);
    let at = 0;
    for (let o = 0; o < out; o++)
      for (let k = 0; k < kh * kw; k++)
        for (let c = 0; c < n; c++) {
          const w = t.weight[(o * n + c) * kh * kw + k];
          weight[at++] = t.weight.half ? halfToFloat(w) : t.weight_scale ? f(w * t.weight_scale[o]) : w;
        }
    Object.assign(layer, { weight, kernel: [kh, kw] });
  }
  if (t.bits) {
    const [out, ...rest] = t.bits.shape, kernel = layer.op === "binary_conv" ? [rest[0], rest[1]] : [1, 1];
    const n = layer.op === "binary_conv" ? layer.in_channels / layer.groups : layer.in_features;
    const taps = kernel[0] * kernel[1], stored = 2 * rest[rest.length - 1], row = wordsFor(n * taps);
    const rows = new Uint32Array(out * row);
    for (let o = 0; o < out; o++)
      for (let k = 0; k < taps; k++)
        appendBits(rows.subarray(o * row), k * n, t.bits, (o * taps + k) * stored * 32, n);
    Object.assign(layer, { rows, kernel });
  }
}

// Copies n bits from bit `first` of `from` to bit `at` of a row that is 0 there.
function appendBits(row, at, from, first, n) {
  while (n > 0) {
    const take = Math.min(n, 32 - (first & 31)), shift = at & 31;
    const value = (from[first >>> 5] >>> (first & 31)) & (take < 32 ? (1 << take) - 1 : -1);
    row[at >>> 5] |= value << shift;
    if (shift + take > 32) row[(at >>> 5) + 1] |= value >>> (32 - shift);
    at += take;
    first += take;
    n -= take;
  }
}

const POINT = { stride: [1, 1], padding: [0, 0, 0, 0], dilation: [1, 1], groups: 1 };

function real(channels, height, width) {
  return { bits: false, channels, height, width, data: new Float32Array(channels * height * width) };
}

function signs(channels, height, width) {
  return { bits: true, channels, height, width, data: new Uint32Array(wordsFor(channels) * height * width) };
}

function outputSize(size, kernel, stride, before, after, dilation = 1) {
  return Math.floor((size + before + after - dilation * (kernel - 1) - 1) / stride) + 1;
}

function windowed(layer, x, kernel) {
  const { stride, padding, dilation = [1, 1] } = layer;
  return {
    height: outputSize(x.height, kernel[0], stride[0], padding[0], padding[2], dilation[0]),
    width: outputSize(x.width, kernel[1], stride[1], padding[1], padding[3], dilation[1]),
  };
}

function convolve(layer, g, x) {
  const [kh, kw] = layer.kernel, { height, width } = windowed(g, x, layer.kernel);
  const bias = layer.tensors.bias, out = real(bias.length, height, width);
  const n = x.channels / g.groups, perGroup = out.channels / g.groups, taps = kh * kw * n;
  const seen = new Float32Array(taps);
  for (let oy = 0, p = 0; oy < height; oy++)
    for (let ox = 0; ox < width; ox++, p++)
      for (let group = 0; group < g.groups; group++) {
        let at = 0;
        for (let ky = 0; ky < kh; ky++)
          for (let kx = 0; kx < kw; kx++) {
            const y = oy * g.stride[0] - g.padding[0] + ky * g.dilation[0];
            const xx = ox * g.stride[1] - g.padding[1] + kx * g.dilation[1];
            const inside = y >= 0 && y < x.height && xx >= 0 && xx < x.width;
            const from = (y * x.width + xx) * x.channels + group * n;
            for (let c = 0; c < n; c++) seen[at++] = inside ? x.data[from + c] : 0;
          }
        for (let o = group * perGroup; o < (group + 1) * perGroup; o++) {
          let sum = bias[o], w = o * taps;
          for (let i = 0; i < taps; i++) sum = f(sum + f(seen[i] * layer.weight[w++]));
          out.data[p * out.channels + o] = sum;
        }
      }
  return out;
}

function binaryConvolve(layer, g, x) {
  const [kh, kw] = layer.kernel, { height, width } = windowed(g, x, layer.kernel), t = layer.tensors;
  const channels = t.bits.shape[0], out = (t.threshold ? signs : real)(channels, height, width);
  const n = x.channels / g.groups, perGroup = channels / g.groups, words = wordsFor(kh * kw * n);
  const pixelWords = wordsFor(x.channels), outWords = wordsFor(channels);
  const row = new Uint32Array(words), mask = new Uint32Array(words), ones = new Uint32Array(pixelWords + 1).fill(-1);
  for (let oy = 0, p = 0; oy < height; oy++)
    for (let ox = 0; ox < width; ox++, p++)
      for (let group = 0; group < g.groups; group++) {
        let taps = 0, at = 0;
        row.fill(0);
        mask.fill(0);
        for (let ky = 0; ky < kh; ky++)
          for (let kx = 0; kx < kw; kx++, at += n) {
            const y = oy * g.stride[0] - g.padding[0] + ky * g.dilation[0];
            const xx = ox * g.stride[1] - g.padding[1] + kx * g.dilation[1];
            if (y < 0 || y >= x.height || xx < 0 || xx >= x.width) continue;
            appendBits(row, at, x.data, (y * x.width + xx) * pixelWords * 32 + group * n, n);
            appendBits(mask, at, ones, 0, n);
            taps++;
          }
        for (let o = group * perGroup; o < (group + 1) * perGroup; o++) {
          let differing = 0, w = o * words;
          for (let i = 0; i < words; i++) differing += popcount((row[i] ^ layer.rows[w++]) & mask[i]);
          const dot = taps * n - 2 * differing;
          if (t.threshold) {
            if (dot < t.threshold[o] !== t.flip[o] > 0) out.data[p * outWords + (o >>> 5)] |= 1 << (o & 31);
          } else out.data[p * channels + o] = f(f(dot * t.scale[o]) + t.bias[o]);
        }
      }
  return out;
}

function eachValue(x, change) {
  const out = real(x.channels, x.height, x.width);
  for (let i = 0, c = 0; i < x.data.length; i++, c = c + 1 === x.channels ? 0 : c + 1) out.data[i] = change(x.data[i], c);
  return out;
}

// Every window of a pool: take(from, first) for each tap inside, done(output pixel, taps inside).
function eachWindow(layer, x, kernel, take, done) {
  const { height, width } = windowed(layer, x, kernel);
  for (let oy = 0, p = 0; oy < height; oy++)
    for (let ox = 0; ox < width; ox++, p++) {
      let inside = 0;
      for (let ky = 0; ky < kernel[0]; ky++)
        for (let kx = 0; kx < kernel[1]; kx++) {
          const y = oy * layer.stride[0] - layer.padding[0] + ky, xx = ox * layer.stride[1] - layer.padding[1] + kx;
          if (y >= 0 && y < x.height && xx >= 0 && xx < x.width) take(y * x.width + xx, p, inside++ === 0);
        }
      done(p, inside);
    }
}

function average(layer, x, kernel, whole) {
  const { height, width } = windowed(layer, x, kernel), out = real(x.channels, height, width), c = x.channels;
  const add = (from, to) => { for (let i = 0; i < c; i++) out.data[to * c + i] += x.data[from * c + i]; };
  const divide = (p, n) => {
    const share = f(1 / (whole || n || 1));
    for (let i = 0; i < c; i++) out.data[p * c + i] *= share;
  };
  eachWindow(layer, x, kernel, add, divide);
  return out;
}

// What each op of docs/format.md computes. Its name here is its name there.
const ops = {
  conv(layer, x) { return convolve(layer, layer, x); },
  linear(layer, x) { return convolve(layer, POINT, x); },
  binary_conv(layer, x) { return binaryConvolve(layer, layer, x); },
  binary_linear(layer, x) { return binaryConvolve(layer, POINT, x); },
  sign(layer, x) {
    const out = signs(x.channels, x.height, x.width), { threshold, flip } = layer.tensors, words = wordsFor(x.channels);
    for (let p = 0, i = 0; p < x.height * x.width; p++)
      for (let c = 0; c < x.channels; c++, i++)
        if (x.data[i] < (threshold ? threshold[c] : 0) !== (flip ? flip[c] > 0 : false)) out.data[p * words + (c >>> 5)] |= 1 << (c & 31);
    return out;
  },
  affine(layer, x) { const { scale, bias } = layer.tensors; return eachValue(x, (v, c) => f(f(v * scale[c]) + bias[c])); },
  prelu(layer, x) { const { slope } = layer.tensors; return eachValue(x, (v, c) => (v < 0 ? f(v * slope[c]) : v)); },
  relu(layer, x) { return eachValue(x, (v) => (v < 0 ? 0 : v)); },
  hardtanh(layer, x) { return eachValue(x, (v) => (v < -1 ? -1 : v > 1 ? 1 : v)); },
  clamp(layer, x) {
    const low = f(layer.low), high = f(layer.high);
    return eachValue(x, (v) => (v < low ? low : v > high ? high : v));
  },
  max_pool(layer, x) {
    const { height, width } = windowed(layer, x, layer.kernel), n = x.bits ? wordsFor(x.channels) : x.channels;
    const out = (x.bits ? signs : real)(x.channels, height, width);
    const take = (from, to, first) => {
      for (let i = 0; i < n; i++) {
        const v = x.data[from * n + i], o = to * n + i;
        if (first) out.data[o] = v;
        else if (x.bits) out.data[o] &= v;
        else if (v > out.data[o]) out.data[o] = v;
      }
    };
    eachWindow(layer, x, layer.kernel, take, () => {});
    return out;
  },
  avg_pool(layer, x) { return average(layer, x, layer.kernel, layer.count_include_pad ? layer.kernel[0] * layer.kernel[1] : 0); },
  global_avg_pool(layer, x) { return average(POINT, x, [x.height, x.width], 0); },
  flatten(layer, x) {
    const pixels = x.height * x.width, out = (x.bits ? signs : real)(x.channels * pixels, 1, 1), words = wordsFor(x.channels);
    for (let c = 0, at = 0; c < x.channels; c++)
      for (let p = 0; p < pixels; p++, at++)
        if (!x.bits) out.data[at] = x.data[p * x.channels + c];
        else if ((x.data[p * words + (c >>> 5)] >>> (c & 31)) & 1) out.data[at >>> 5] |= 1 << (at & 31);
    return out;
  },
  add(layer, a, b) {
    const out = real(a.channels, a.height, a.width);
    for (let i = 0; i < out.data.length; i++) out.data[i] = a.data[i] + b.data[i];
    return out;
  },
  concat(layer, ...parts) {
    const [{ height, width }] = parts, out = real(parts.reduce((n, part) => n + part.channels, 0), height, width);
    for (let p = 0, at = 0; p < height * width; p++)
      for (const part of parts)
        for (let c = 0; c < part.channels; c++) out.data[at++] = part.data[p * part.channels + c];
    return out;
  },
};

// The value of every layer by name, for an image of floats, channels innermost. The last is the logits.
function runNetwork(network, image) {
  const [channels, height, width] = network.input;
  const values = new Map([["input", { bits: false, channels, height, width, data: image }]]);
  for (const layer of network.layers)
    values.set(layer.name, ops[layer.op](layer, ...layer.inputs.map((name) => values.get(name))));
  return values;
}
