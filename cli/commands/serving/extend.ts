import { checkModelDirectory } from '../../../api/inspect/model-folder.ts';
import { checkWritable } from '../../../api/output/check-output.ts';
import { refuseOverlap } from '../../../api/output/check-overlap.ts';
import { UsageError } from '../../../engine/errors.ts';
import { formatCount } from '../../../engine/format.ts';
import type { JsonObject } from '../../../index.ts';
import { attributeOptions, checkAttributeFlags } from '../../options/data/attribute-options.ts';
import { machineOptions } from '../../options/machine-options.ts';
import { commonOptions, forceOption } from '../../options/output-options.ts';
import { modelDirOption } from '../../options/training/training-options.ts';
import { summaryOf } from '../../output/write-output.ts';
import { seconds3 } from '../../progress/phrases.ts';
import { openSession } from '../../sessions/open-session.ts';
import { defineCommand, modelFolder } from '../command.ts';

const { itemAttributes, itemAttributesIdCol, userAttributes, userAttributesIdCol } = attributeOptions;
const { workers } = machineOptions;
const trained = { defaultText: 'the name that it had in training' };

export const command = defineCommand({
  summary: 'Add items and users to a model by their attributes',
  positionals: [modelFolder],
  options: {
    modelDir: modelDirOption,
    force: forceOption,
    itemAttributes,
    itemAttributesIdCol: { ...itemAttributesIdCol, ...trained },
    userAttributes,
    userAttributesIdCol: { ...userAttributesIdCol, ...trained },
    workers,
    ...commonOptions,
  },
  examples: [
    [
      'extend model --item-attributes new.csv --model-dir model-2',
      'new products, with the columns of the training',
    ],
  ],
  epilog:
    'Nothing is trained: a model that was trained with attributes computes the factors from them. Items and users with ratings keep theirs.',
  run: async ({ values, given, positionals }, { signal, onEvent }) => {
    const { modelDir, force } = values;
    const [folder] = positionals.model;
    checkAttributeFlags(values, given);
    const files = { item: values.itemAttributes, user: values.userAttributes };
    if (files.item === undefined && files.user === undefined)
      throw new UsageError('extend needs --item-attributes or --user-attributes', {
        advice: 'Name a file with a row for each new item, or user',
      });
    await refuseOverlap(modelDir, [folder, files.item, files.user]);
    await checkWritable(modelDir);
    await checkModelDirectory(modelDir, force);
    await using session = await openSession({ ...values, device: 'cpu' }, { signal });
    const before = await session.loadModel(folder, { signal, onEvent });
    let model = before;
    const json: Record<string, JsonObject> = {};
    const lines: [string, string][] = [];
    for (const side of ['item', 'user'] as const) {
      const file = files[side];
      if (file === undefined) continue;
      const idCol = values[`${side}AttributesIdCol`];
      const extended = await model.extended(side, file, { idCol, signal, onEvent });
      const { model: made, ...counts } = extended;
      model = made;
      const all = side === 'item' ? model.itemCount : model.userCount;
      json[`${side}s`] = { ...counts, all };
      lines.push([`${side}s`, `${formatCount(all)}, ${formatCount(counts.added)} of them new`]);
    }
    if (before.indexed.length > 0 && model.indexed.length === 0)
      onEvent({
        type: 'warning',
        text: 'the index of the model does not have the new items, so it is not saved: build it again by factorflow index',
      });
    // What users have rated stays with the model.
    await model.save(modelDir, { overwrite: force, signal, ...(model.histories && { histories: true }) });
    const seconds = performance.now() / 1000;
    return {
      json: { command: 'extend', ...json, seconds: { total: seconds }, model: modelDir },
      text: summaryOf(modelDir, [...lines, ['time', seconds3(seconds)], ['model', modelDir]]),
    };
  },
});
