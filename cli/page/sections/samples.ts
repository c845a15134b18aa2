import type { SampleUser } from '../../../api/reports/sample-users.ts';
import { counted } from '../../../engine/format.ts';
import type { Id, ItemNames } from '../../../index.ts';
import { shownName } from '../../report/facts.ts';
import { element, table } from '../document.ts';
import type { Section } from '../page.ts';

/** Recommendations for a few users next to their highest ratings; undefined without users. */
export function samplesSection(
  samples: readonly SampleUser[],
  names: ItemNames | undefined,
): Section | undefined {
  if (samples.length === 0) return undefined;
  const title = (item: Id) => shownName(names?.get(item)) || String(item);
  return {
    heading: 'Recommendations',
    text: `For ${counted(samples.length, 'user')} with ${samples.length > 1 ? 'many, some and few' : 'their'} training ratings, items that they have not rated.`,
    drawing: () => element('div', ...samples.map((sample) => sampleOf(sample, title))),
  };
}

function sampleOf(
  { user, ratings, rated, recommended }: SampleUser,
  title: (item: Id) => string,
): HTMLElement {
  const own = rated.map(({ item, rating }) => [title(item), String(Number(rating.toPrecision(4)))]);
  const found = recommended.map(({ item, score }) => [title(item), score.toFixed(2)]);
  return element(
    'div.sample',
    element('h3', `User ${String(user)}, ${counted(ratings, 'rating')}`),
    element('div', table(['rated highest', 'rating'], own)),
    element(
      'div',
      found.length === 0
        ? element('p', 'No item is left to recommend.')
        : table(['recommended', 'predicted'], found),
    ),
  );
}
