import { LostTrainingError } from '../../api/lost-training.ts';
import type { Model } from '../../api/model.ts';
import { DeviceLostError } from '../../engine/errors.ts';

/** The model that `fit` gives. When the GPU was lost on the way, saves what there is of a model and throws, naming where it is (exit 5). */
export async function saveWhatIsLeft(fit: Promise<Model>, directory: string, options: { readonly overwrite: boolean; readonly signal: AbortSignal }): Promise<Model> {
  try {
    return await fit;
  } catch (error) {
    if (!(error instanceof LostTrainingError)) throw error;
    const { model, iteration, cause } = error;
    await model.save(directory, options);
    const { summary } = cause as DeviceLostError;
    throw new DeviceLostError(`${summary}; the model of iteration ${iteration} is saved in ${directory}`, { phase: 'train', advice: 'Train again, or use --device cpu', cause });
  }
}
