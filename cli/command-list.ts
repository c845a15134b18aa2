import type { Command, Positional } from './commands/command.ts';

/** A command by name and summary. Its code is loaded when it is chosen. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

function entry(
  name: string,
  summary: string,
  load: () => Promise<{ readonly command: Command }>,
): CommandEntry {
  return { name, summary, load: async () => (await load()).command };
}

export const commandList: readonly CommandEntry[] = [
  entry('train', 'Train a factor model on ratings', () => import('./commands/train.ts')),
  entry('tune', 'Search for good parameters and train with the best', () => import('./commands/tune.ts')),
  entry(
    'evaluate',
    "Compare a model's predictions with known ratings",
    () => import('./commands/evaluate.ts'),
  ),
  entry(
    'predict',
    'Predict the ratings of pairs of users and items',
    () => import('./commands/serving/predict.ts'),
  ),
  entry(
    'recommend',
    'Find the best items for all users or some',
    () => import('./commands/serving/recommend.ts'),
  ),
  entry(
    'similar',
    'Find the items or users most similar to given ones',
    () => import('./commands/serving/similar.ts'),
  ),
  entry('fold-in', 'Solve new users from their ratings', () => import('./commands/serving/fold-in.ts')),
  entry(
    'extend',
    'Add items and users to a model by their attributes',
    () => import('./commands/serving/extend.ts'),
  ),
  entry(
    'explain',
    "Show what each of a user's ratings contributes to a score",
    () => import('./commands/serving/explain.ts'),
  ),
  entry(
    'index',
    'Build the index of a model with a large catalogue',
    () => import('./commands/serving/build-index.ts'),
  ),
  entry(
    'serve',
    'Answer requests for recommendations over HTTP',
    () => import('./commands/serving/serve.ts'),
  ),
  entry('export', "Write a model's factors for other programs", () => import('./commands/data/export.ts')),
  entry('inspect', 'Describe a data set or a model', () => import('./commands/data/inspect.ts')),
  entry('convert', 'Copy ratings into another format', () => import('./commands/data/convert.ts')),
  entry(
    'split',
    'Write the parts of ratings to train and to test on',
    () => import('./commands/data/split.ts'),
  ),
  entry('plan', 'Show what a training run would do, and why', () => import('./commands/plan.ts')),
  entry('generate', 'Write a synthetic data set', () => import('./commands/data/generate.ts')),
  entry(
    'doctor',
    'Show versions, processor, memory and GPU; check and tune its kernels',
    () => import('./commands/doctor.ts'),
  ),
  entry(
    'worker',
    'Train for a parent process: Arrow in, events and factors out',
    () => import('./commands/worker.ts'),
  ),
  entry(
    'completion',
    'Print a script that completes commands and flags in a shell',
    () => import('./commands/completion.ts'),
  ),
];

/** The words after a command's name, in yargs' notation: "<model> <ratings..>". */
export function wordsOf(positionals: readonly Positional[]): string {
  return positionals
    .map(({ name, required, many }) => {
      const word = `${name}${many ? '..' : ''}`;
      return required ? `<${word}>` : `[${word}]`;
    })
    .join(' ');
}
