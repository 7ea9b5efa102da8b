// The bitfield as a picture: an item is a square, down to a pixel. It scrolls where it is large, and draws only what is seen.
import {html, useEffect, useRef, useState} from "./ui.js";
import {Field, STATES, layout} from "./field.js";
import {count} from "./format.js";

const HEIGHT = 420;
const KEYS = {ArrowLeft: -1, ArrowRight: 1};
/** How far from a small square a second tap still means it, in pixels: less than a finger, more than it trembles. */
const NEAR = 8;

/** A colour of the style as the number that a picture's memory has. */
function colours(element) {
  const style = getComputedStyle(element);
  return STATES.map((state) => {
    const hex = style.getPropertyValue(`--item-${state}`).trim();
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
  });
}

/** Draws all squares that are seen. Returns the picture, for what is drawn over it and taken away again. */
function draw(canvas, field, total, {size, columns}, top) {
  const [width, height] = [canvas.width, canvas.height];
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const palette = colours(canvas);
  const gap = size >= 6 ? 1 : 0;
  const first = Math.floor(top / size);
  for (let row = first; (row - first) * size < height + size; row += 1) {
    const y = row * size - top;
    for (let column = 0; column < columns; column += 1) {
      const place = row * columns + column;
      if (place >= total) break;
      const colour = palette[field.state(place)];
      for (let line = Math.max(0, y); line < Math.min(height, y + size - gap); line += 1) {
        const from = line * width + column * size;
        pixels.fill(colour, from, from + size - gap);
      }
    }
  }
  context.putImageData(image, 0, 0);
  return image;
}

/** Draws a frame around a square, and takes the one before away: nothing else is drawn again. */
function mark(canvas, image, {size, columns}, top, before, chosen) {
  const context = canvas.getContext("2d");
  const square = (place) => [place % columns * size, Math.floor(place / columns) * size - top];
  if (before >= 0) {
    const [x, y] = square(before);
    context.putImageData(image, 0, 0, x - 4, y - 4, size + 8, size + 8);
  }
  if (chosen >= 0) {
    const [[x, y], gap] = [square(chosen), size >= 6 ? 1 : 0];
    context.strokeStyle = getComputedStyle(canvas).getPropertyValue("--text");
    context.lineWidth = 2;
    context.strokeRect(x - 2, y - 2, size + 4 - gap, size + 4 - gap);
  }
}

/** The picture of a fan-out. `live`: whether its items still change. */
export function Bitfield({fanout, live}) {
  const [frame, canvas, field] = [useRef(), useRef(), useRef()];
  const [width, setWidth] = useState(0);
  const [chosen, choose] = useState(-1);
  const [error, setError] = useState(null);
  const total = fanout.total;
  if (field.current?.fanout !== fanout.id) field.current = new Field(fanout.id);
  const view = layout(total, width, HEIGHT);
  const height = Math.min(HEIGHT, Math.ceil(total / view.columns) * view.size);
  const state = useRef({});
  state.current = {view, chosen, total, height};

  // The picture that was drawn last, and the square that is marked in it.
  const drawn = useRef(null);
  const remark = useRef(() => {});
  remark.current = () => {
    if (!drawn.current) return;
    const {image, top, marked} = drawn.current;
    mark(canvas.current, image, view, top, marked, chosen);
    drawn.current.marked = chosen;
  };
  const paint = useRef(() => {});
  paint.current = () => {
    if (!canvas.current || width === 0) return;
    const top = frame.current.scrollTop;
    drawn.current = {image: draw(canvas.current, field.current, total, view, top), top, marked: -1};
    remark.current();
  };
  useEffect(() => paint.current(), [fanout.id, total, width, height]);
  useEffect(() => remark.current(), [chosen]);

  useEffect(() => {
    const sized = new ResizeObserver(([{contentRect}]) => setWidth(Math.floor(contentRect.width)));
    sized.observe(frame.current);
    const theme = matchMedia("(prefers-color-scheme: dark)");
    const again = () => paint.current();
    theme.addEventListener("change", again);
    return () => {
      sized.disconnect();
      theme.removeEventListener("change", again);
    };
  }, []);

  // What is seen is read, again and again while it changes.
  useEffect(() => {
    if (width === 0 || total === 0) return undefined;
    const stop = new AbortController();
    let timer;
    let reading = false;
    const look = async () => {
      clearTimeout(timer);
      if (reading) return;
      reading = true;
      const top = frame.current.scrollTop;
      const {view: {size, columns}, height: shown} = state.current;
      try {
        await field.current.read(Math.floor(top / size) * columns, Math.min(total, Math.ceil((top + shown) / size) * columns) - 1, stop.signal);
        setError(null);
      } catch (problem) {
        if (!stop.signal.aborted) setError(problem);
      }
      reading = false;
      if (stop.signal.aborted) return;
      paint.current();
      const moved = frame.current.scrollTop !== top;
      if (live || moved) timer = setTimeout(look, moved ? 50 : document.hidden ? 10000 : 1500);
    };
    const scrolled = () => {
      paint.current();
      clearTimeout(timer);
      timer = setTimeout(look, 120);
    };
    const element = frame.current;
    element.addEventListener("scroll", scrolled);
    look();
    return () => {
      stop.abort();
      clearTimeout(timer);
      element.removeEventListener("scroll", scrolled);
    };
  }, [fanout.id, total, width, live]);

  const placeAt = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + frame.current.scrollTop];
    const column = Math.floor(x / view.size);
    const place = Math.floor(y / view.size) * view.columns + column;
    return column < view.columns && place < total ? place : -1;
  };
  const open = (place) => {
    const item = field.current.item(place);
    if (item) location.hash = `#/tasks/${item}`;
  };
  // A finger hides what it points at: its first tap names the item, the second one opens it.
  const pointer = useRef("mouse");
  const clicked = (event) => {
    const place = placeAt(event);
    if (pointer.current !== "touch" || place === chosen) return open(place);
    const [down, right] = [Math.floor(place / view.columns) - Math.floor(chosen / view.columns), place % view.columns - chosen % view.columns];
    const again = chosen >= 0 && Math.hypot(down, right) * view.size <= Math.max(view.size / 2, NEAR);
    return again ? open(chosen) : choose(place);
  };
  const show = (place) => {
    choose(place);
    const [y, element] = [Math.floor(place / view.columns) * view.size, frame.current];
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + view.size > element.scrollTop + height) element.scrollTop = y + view.size - height;
  };
  const pressed = (event) => {
    const row = {ArrowUp: -view.columns, ArrowDown: view.columns, PageUp: -view.columns * 10, PageDown: view.columns * 10};
    const step = KEYS[event.key] ?? row[event.key];
    const end = {Home: 0, End: total - 1}[event.key];
    const found = {f: STATES.indexOf("failed"), p: STATES.indexOf("pending")}[event.key.toLowerCase()];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && chosen >= 0) open(chosen);
    else if (found !== undefined) {
      const place = field.current.find(found, chosen, event.shiftKey ? -1 : 1);
      if (place >= 0) show(place);
    } else if (step !== undefined || end !== undefined) {
      show(Math.max(0, Math.min(total - 1, end ?? Math.max(chosen, 0) + (chosen < 0 ? 0 : step))));
    } else return;
    event.preventDefault();
  };

  const item = chosen >= 0 ? field.current.item(chosen) : null;
  return html`<figure class="bitfield">
    <div class="frame" ref=${frame} style=${{height: `${height}px`}} tabindex="0" role="group" aria-describedby="bitfield-keys"
        aria-label=${`The states of ${count(total)} items, as a picture`} onKeyDown=${pressed}>
      <div class="all" style=${{height: `${Math.ceil(total / view.columns) * view.size}px`}}>
        <canvas ref=${canvas} width=${width} height=${height} onPointerDown=${(event) => { pointer.current = event.pointerType; }}
            onPointerMove=${(event) => event.pointerType !== "touch" && choose(placeAt(event))} onClick=${clicked}></canvas>
      </div>
    </div>
    <figcaption>
      <span class="legend">${STATES.slice(1).map((name) => html`<span key=${name}><i class=${`swatch ${name}`}></i>${name}</span>`)}</span>
      <output class="chosen" aria-live="polite">${item
        && html`Item ${count(chosen + 1)}: ${STATES[field.current.state(chosen)]} <a class="id" href=${`#/tasks/${item}`}>${item}</a>`}</output>
      <p class="quiet" id="bitfield-keys">Point at an item, or tap it, to name it. Click it, or tap it again, to open it. Arrow keys move, F and P find the next failed and
        pending one, Enter opens.</p>
    </figcaption>
    ${error && html`<p class="problem" role="alert">${error.message}</p>`}
  </figure>`;
}
