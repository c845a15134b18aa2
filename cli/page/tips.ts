import type { Plot } from '../generated/charts.js';
import { element } from './document.ts';

/** A point of a chart in the units of its scales, with its tooltip. */
export interface Tip {
  readonly x: number | string;
  readonly y: number | string;
  readonly text: string;
}

/** Hover areas over a drawing that show tooltips with CSS only, without a script. */
export function tipLayer(
  tips: readonly Tip[],
  drawing: ReturnType<typeof Plot.plot>,
): HTMLElement | undefined {
  const [x, y] = [drawing.scale('x'), drawing.scale('y')];
  if (tips.length === 0 || x === undefined || y === undefined) return undefined;
  const [width, height] = ['width', 'height'].map((name) => Number(drawing.getAttribute(name)));
  const places = tips.map((tip) =>
    tipAt((100 * Number(x.apply(tip.x))) / width, (100 * Number(y.apply(tip.y))) / height, tip.text),
  );
  return element('div', { 'aria-hidden': 'true' }, ...places);
}

/** The hover area of one tooltip, in percent of the drawing; tooltips in the right half open to the left. */
export function tipAt(x: number, y: number, text: string, kind = 'tip'): HTMLElement {
  const style = `left:${x.toFixed(1)}%;top:${y.toFixed(1)}%`;
  return element('i', { class: x > 50 ? `${kind} left` : kind, style, 'data-tip': text });
}
