/** The entry `factorflow/browser`: recommendations in a page, from a model on a web server. */
// oxlint-disable-next-line import/no-unassigned-import -- Must run before the modules below.
import './dispose-symbols.ts';
export { openModel, type OpenModelOptions } from './open-model.ts';
export type { PageDeviceName } from './device-choice.ts';
export { webGpu, type WebGpuCode } from './web-gpu.ts';
export type { PageTraining } from './page-training.ts';
export { type PageAlsOptions, trainAls } from './train-als.ts';
export { type PageSgdOptions, trainSgd } from './train-sgd.ts';
export type { PageRating } from './page-ratings.ts';
export {
  PageModel,
  type PageDeviceOption,
  type PageExplainOptions,
  type PageRequestOptions,
  type PageSimilarOptions,
} from './page-model.ts';
export type { PageNames } from './page-model.ts';
export { type ItemRow, openNames, type OpenNamesOptions, RemoteNames } from './names/remote-names.ts';
export type { Fetch } from './remote-file.ts';
export { ItemNames, type ItemNameEntry } from '../operators/serving/item-names.ts';
export type { RatedItem } from '../api/serving/fold-in-request.ts';
export type { RecommendedItem, UserRecommendations } from '../api/serving/request.ts';
export type { Explanation } from '../api/serving/explain.ts';
export type { SimilarItems } from '../api/serving/similar-to.ts';
export type { Id } from '../engine/keys/find-id.ts';
export { CapacityError, DataError, DivergedError, FactorFlowError, UsageError } from '../engine/errors.ts';
