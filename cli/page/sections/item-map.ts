import type { ItemMap, MappedItem } from '../../../api/reports/item-map.ts';
import { formatCount } from '../../../engine/format.ts';
import type { Id, ItemNames } from '../../../index.ts';
import { shownName } from '../../report/facts.ts';
import { element } from '../document.ts';
import { tipAt } from '../figure.ts';
import type { Section } from '../page.ts';
import { range } from './ratings.ts';

/** Colours of the dots, from few to many ratings. */
const COLOURS = 5;

/** Most characters of a label; the tooltip of a dot has more. */
const MOST_LETTERS = 26;

/** Most items with a label: with names, and with only ids. */
const MOST_LABELS = { named: 60, unnamed: 25 } as const;

/**
 * Share of items at either end of an axis that are drawn at its edge, so that outliers do not flatten the
 * map.
 */
const EDGE = 0.005;

/** Sizes of the map in pixels for screens and for phones: see the style. */
const SIZES = { wide: { width: 828, height: 520 }, narrow: { width: 340, height: 340 } } as const;

interface Dot extends MappedItem {
  readonly title: string;
  /** Position in percent of the map. */
  readonly left: number;
  readonly top: number;
  readonly colour: number;
}

/**
 * Items on a plane, coloured by genre if known, else by number of ratings; the items with the most ratings
 * have labels.
 */
export function itemMapSection(
  { items, share }: ItemMap,
  all: number,
  names: ItemNames | undefined,
): Section {
  const bounds = colourBounds(items);
  const dots = placed(items, bounds, (item) => shownName(names?.get(item)) || String(item));
  const { genres, text: onColours } = mapColours(
    items.map(({ item }) => item),
    names,
  );
  const which =
    items.length < all
      ? `The ${formatCount(items.length)} items with the most ratings of ${formatCount(all)}`
      : `All ${formatCount(all)} items`;
  const text = `${which}, by ${items.every(({ y }) => y === 0) ? 'their factor' : 'the directions of their factors'}: items near each other are liked by the same users.${share < 0.995 ? ` The plane shows ${(100 * share).toFixed(0)} % of the variance.` : ''}${onColours}`;
  const labels = labelsOf(dots.slice(0, names === undefined ? MOST_LABELS.unnamed : MOST_LABELS.named));
  return {
    heading: 'Map of items',
    text,
    drawing: () =>
      element('figure', genres?.legend() ?? legend(items, bounds), mapOf(dots, { labels, text, genres })),
  };
}

interface MapParts {
  readonly labels: readonly HTMLElement[];
  readonly text: string;
  readonly genres: GenreColours | undefined;
}

function mapOf(dots: readonly Dot[], { labels, text, genres }: MapParts): HTMLElement {
  // Dots with many ratings are drawn on top, and larger.
  const marks = dots.toReversed().map(({ left, top, colour, item, title, ratings }) => {
    const lines = [title, genres?.genre(item), `${formatCount(ratings)} rating${ratings === 1 ? '' : 's'}`];
    const kind = genres === undefined ? `c${colour}` : `c${colour} ${genres.colour(item)}`;
    return tipAt(left, top, lines.filter((line) => line !== undefined).join('\n'), kind);
  });
  const flat = dots.every(({ y }) => y === 0);
  return element(
    'div',
    { class: flat ? 'map flat' : 'map', role: 'img', 'aria-label': text },
    ...marks,
    ...labels,
  );
}

/** The labels that fit on the map for screens, for phones, or for both; earlier dots have priority. */
function labelsOf(dots: readonly Dot[]): HTMLElement[] {
  const boxes = dots.map(({ left, top, title }): Box => ({
    left,
    top,
    letters: Math.min(title.length, MOST_LETTERS),
  }));
  const [wide, narrow] = [freePlaces(boxes, SIZES.wide), freePlaces(boxes, SIZES.narrow)];
  return dots.flatMap(({ left, top, title }, at) => {
    const places = [wide.has(at) ? 'on-wide' : '', narrow.has(at) ? 'on-narrow' : ''].filter(
      (name) => name !== '',
    );
    if (places.length === 0) return [];
    const shown = title.length > MOST_LETTERS ? `${title.slice(0, MOST_LETTERS - 1).trimEnd()}…` : title;
    return [
      element(
        'span',
        {
          class: `${places.join(' ')}${left > 50 ? ' left' : ''}`,
          style: `left:${left.toFixed(1)}%;top:${top.toFixed(1)}%`,
        },
        shown,
      ),
    ];
  });
}

function placed(items: readonly MappedItem[], bounds: readonly number[], title: (item: Id) => string): Dot[] {
  const [x, y] = [axisOf(items.map((one) => one.x)), axisOf(items.map((one) => one.y))];
  return items.map((one) => ({
    ...one,
    title: title(one.item),
    left: x(one.x),
    top: 100 - y(one.y),
    colour: colourOf(one.ratings, bounds),
  }));
}

/** Maps values to 3 to 97 percent. */
function axisOf(values: readonly number[]): (value: number) => number {
  const sorted = values.toSorted((a, b) => a - b);
  const cut = Math.floor(EDGE * sorted.length);
  const [least, most] = [sorted[cut], sorted[sorted.length - 1 - cut]];
  return (value) =>
    most > least ? 3 + (94 * (Math.min(Math.max(value, least), most) - least)) / (most - least) : 50;
}

/** The lower bound of each colour in ratings, with about the same number of items per colour. */
function colourBounds(items: readonly MappedItem[]): readonly number[] {
  const ascending = items.map(({ ratings }) => ratings).toReversed();
  return [
    ...new Set(
      Array.from({ length: COLOURS }, (_, at) => ascending[Math.floor((at * ascending.length) / COLOURS)]),
    ),
  ];
}

function colourOf(ratings: number, bounds: readonly number[]): number {
  // The last colour always means the most ratings.
  return COLOURS - bounds.length + bounds.findLastIndex((bound) => ratings >= bound);
}

function legend(items: readonly MappedItem[], bounds: readonly number[]): HTMLElement {
  const keys = bounds.map((least, at) => {
    const most = at + 1 < bounds.length ? bounds[at + 1] - 1 : items[0].ratings;
    return element(
      'span.key',
      element('i', { class: `c${COLOURS - bounds.length + at}` }),
      range(least, most),
    );
  });
  return element('div.legend', element('span', 'Ratings of the item:'), ...keys);
}

/** A label next to a point of a drawing: its position in percent, and its number of letters. */
interface Box {
  readonly left: number;
  readonly top: number;
  readonly letters: number;
}

/**
 * Pixels: the width of a letter and the height of a line of small type, and the gap between a point and its
 * label.
 */
const LETTER = 6.4;
const LINE = 17;
const GAP = 8;

/**
 * The labels, in order, that overlap no earlier label and fit inside; labels in the right half extend to the
 * left.
 */
export function freePlaces(
  boxes: readonly Box[],
  { width, height }: { readonly width: number; readonly height: number },
): ReadonlySet<number> {
  const taken: { readonly x: number; readonly y: number; readonly end: number }[] = [];
  const free = new Set<number>();
  for (const [at, { left, top, letters }] of boxes.entries()) {
    const size = letters * LETTER;
    const anchor = (left * width) / 100;
    const x = left > 50 ? anchor - GAP - size : anchor + GAP;
    const y = (top * height) / 100;
    if (x < 0 || x + size > width) continue;
    if (taken.some((other) => Math.abs(other.y - y) < LINE && x < other.end && other.x < x + size)) continue;
    taken.push({ x: x - GAP, y, end: x + size + GAP });
    free.add(at);
  }
  return free;
}

/** Number of genres with their own colour: classes kind-0 to kind-6 of the style. */
const COLOURED = 7;

const GREY = 'kind-none';

/** The colours of items by their genres. */
interface GenreColours {
  /** The genre of an item on one line; undefined without one. */
  genre(item: Id): string | undefined;
  /** The class of an item's dot. */
  colour(item: Id): string;
  legend(): HTMLElement;
}

/** The colours of an item map, and a sentence about them that starts with a space. */
interface MapColours {
  /** Undefined if the map only shows numbers of ratings. */
  readonly genres: GenreColours | undefined;
  readonly text: string;
}

/**
 * Colours for the most frequent genres; others are grey. No colours for fewer than two genres, or for free
 * text (more genres than half the items).
 */
function mapColours(items: readonly Id[], names: ItemNames | undefined): MapColours {
  const counts = new Map<string | undefined, number>();
  const genre = (item: Id) => shownName(names?.genre(item)) || undefined;
  for (const item of items) counts.set(genre(item), (counts.get(genre(item)) ?? 0) + 1);
  const without = counts.get(undefined) ?? 0;
  counts.delete(undefined);
  if (counts.size < 2) return { genres: undefined, text: '' };
  const known = items.length - without;
  if (counts.size > known / 2) {
    const text = ` ${formatCount(counts.size)} genres of ${formatCount(known)} items are too many for colours.`;
    return { genres: undefined, text };
  }
  const genres = [...counts].sort((a, b) => b[1] - a[1]);
  const [own, other] = [genres.slice(0, COLOURED), genres.slice(COLOURED)];
  const colours = new Map(own.map(([name], at) => [name, `kind-${at}`]));
  const rest = { other: other.reduce((sum, [, count]) => sum + count, 0), without };
  const colour = (item: Id) => colours.get(genre(item)) ?? GREY;
  const text = ' Larger dots have more ratings.';
  return { genres: { genre, colour, legend: () => genreLegend(own, rest) }, text };
}

type Counted = readonly [genre: string | undefined, count: number];

/** Numbers of items with a grey dot. */
interface GreyItems {
  readonly other: number;
  readonly without: number;
}

function genreLegend(own: readonly Counted[], { other, without }: GreyItems): HTMLElement {
  const names = [...(other > 0 ? ['other'] : []), ...(without > 0 ? ['none'] : [])];
  const grey = names.length === 0 ? [] : [key(GREY, names.join(' or '), other + without)];
  const keys = own.map(([genre, count], at) => key(`kind-${at}`, genre ?? '', count));
  return element('div.legend', element('span', 'Genre, items:'), ...keys, ...grey);
}

function key(colour: string, text: string, count: number): HTMLElement {
  return element('span.key', element('i', { class: colour }), `${text} ${formatCount(count)}`);
}
