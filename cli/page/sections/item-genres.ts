import { formatCount } from '../../../engine/format.ts';
import type { Id, ItemNames } from '../../../index.ts';
import { shownName } from '../../report/shown-name.ts';
import { element } from '../document.ts';

/** Number of genres with their own colour: classes kind-0 to kind-6 of the style. */
const COLOURED = 7;

const GREY = 'kind-none';

/** The colours of items by their genres. */
export interface GenreColours {
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
export function mapColours(items: readonly Id[], names: ItemNames | undefined): MapColours {
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
  return { genres: { genre, colour, legend: () => legend(own, rest) }, text };
}

type Counted = readonly [genre: string | undefined, count: number];

/** Numbers of items with a grey dot. */
interface GreyItems {
  readonly other: number;
  readonly without: number;
}

function legend(own: readonly Counted[], { other, without }: GreyItems): HTMLElement {
  const names = [...(other > 0 ? ['other'] : []), ...(without > 0 ? ['none'] : [])];
  const grey = names.length === 0 ? [] : [key(GREY, names.join(' or '), other + without)];
  const keys = own.map(([genre, count], at) => key(`kind-${at}`, genre ?? '', count));
  return element('div', { class: 'legend' }, element('span', {}, 'Genre, items:'), ...keys, ...grey);
}

function key(colour: string, text: string, count: number): HTMLElement {
  return element('span', { class: 'key' }, element('i', { class: colour }), `${text} ${formatCount(count)}`);
}
