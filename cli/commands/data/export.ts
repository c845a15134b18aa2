import { checkWritable } from '../../../api/output/check-output.ts';
import { refuseOverlap } from '../../../api/output/check-overlap.ts';
import { formatCount } from '../../../engine/format.ts';
import { choice, requiredText } from '../../options/kinds.ts';
import { grouped } from '../../options/option.ts';
import { commonOptions, forceOption } from '../../options/output-options.ts';
import { summaryOf } from '../../output/write-output.ts';
import { seconds3 } from '../../progress/phrases.ts';
import { defineCommand, modelFolder } from '../command.ts';

export const command = defineCommand({
  summary: "Write a model's factors for other programs",
  positionals: [modelFolder],
  options: {
    ...grouped('Required:', {
      output: requiredText('folder'),
    }),
    ...grouped('Output:', {
      to: choice(
        'NumPy arrays (user_ids.npy, user_factors.npy and of items), Parquet (users.parquet, items.parquet), or one file of tensors (factors.safetensors)',
        { choices: ['npy', 'parquet', 'safetensors'], fallback: 'npy' },
      ),
      precision: choice('of the numbers; float16 takes half the bytes', {
        choices: ['float32', 'float16'],
        fallback: 'float32',
      }),
    }),
    force: forceOption,
    ...commonOptions,
  },
  examples: [
    ['export model --output arrays', 'numpy.load("arrays/item_factors.npy")'],
    [
      'export model --output vectors --to parquet --precision float16',
      'id and features, for a vector database',
    ],
    [
      'export model --output tensors --to safetensors',
      'safetensors.torch.load_file("tensors/factors.safetensors")',
    ],
  ],
  run: async ({ values, positionals }, { signal, onEvent }) => {
    const { output, to, precision, force } = values;
    await refuseOverlap(output, positionals.model);
    await checkWritable(output);
    const { Session } = await import('../../../api/session.ts');
    await using session = Session.withoutDevices({}, { oneVersion: true });
    const model = await session.loadModel(positionals.model[0], { signal, onEvent });
    await model.exportFactors(output, { format: to, precision, overwrite: force, signal });
    const seconds = performance.now() / 1000;
    const { userCount: users, itemCount: items, features } = model;
    return {
      json: {
        command: 'export',
        users,
        items,
        features,
        format: to,
        precision,
        seconds: { total: seconds },
        output,
      },
      isSummary: true,
      text: summaryOf(output, [
        ['users', formatCount(users)],
        ['items', formatCount(items)],
        ['features', `${features}, ${precision}`],
        ['time', seconds3(seconds)],
        ['output', output],
      ]),
    };
  },
});
