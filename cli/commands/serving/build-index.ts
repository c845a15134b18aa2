import { indexParams } from '../../../api/option-params.ts';
import { counted, formatBytes, formatCount } from '../../../engine/format.ts';
import { choice, flagsOf } from '../../options/kinds.ts';
import { machineOptions } from '../../options/machine-options.ts';
import { commonOptions } from '../../options/output-options.ts';
import { summaryOf } from '../../output/write-output.ts';
import { seconds3 } from '../../progress/phrases.ts';
import { openSession } from '../../sessions/open-session.ts';
import { defineCommand, modelFolder } from '../command.ts';

const { workers } = machineOptions;

export const command = defineCommand({
  summary: 'Build the index of a model with a large catalogue',
  positionals: [modelFolder],
  options: {
    searches: choice('build it for items of users (recommend), for similar items, or both', {
      choices: ['both', 'recommend', 'similar'],
      fallback: 'both',
    }),
    ...flagsOf(indexParams),
    workers,
    ...commonOptions,
  },
  examples: [
    ['index model', 'before "serve model" of a million items and more'],
    ['index model --searches recommend --recall 0.99', 'more lists are searched, and more is found'],
  ],
  epilog:
    'The files are model/itemIndex/*.lists; a new model in the folder has none. recommend, similar and serve ' +
    'use them from 1,000,000 items on, and with --index on for fewer.',
  run: async ({ values, positionals }, { signal, onEvent }) => {
    const { searches, lists, recall, seed } = values;
    const [folder] = positionals.model;
    await using session = await openSession({ ...values, device: 'cpu' }, { signal });
    const model = await session.loadModel(folder, { signal, onEvent });
    const built = await model.buildIndex({
      ...(lists === undefined ? {} : { lists }),
      ...(searches === 'both' || searches === undefined ? {} : { searches: [searches] }),
      recall,
      seed,
      signal,
      onEvent,
    });
    await model.saveIndex(folder);
    const seconds = performance.now() / 1000;
    return {
      json: {
        command: 'index',
        items: model.itemCount,
        indexes: built.map((one) => ({ ...one })),
        seconds: { total: seconds },
        model: folder,
      },
      text: summaryOf(folder, [
        ['items', formatCount(model.itemCount)],
        ...built.map((one): [string, string] => [
          one.search,
          `${counted(one.lists, 'list')}, ${formatCount(one.probes)} searched: ` +
            `${(100 * one.recall).toFixed(1)} % of the 20 best, ${formatBytes(one.bytes)}`,
        ]),
        ['time', seconds3(seconds)],
      ]),
    };
  },
});
