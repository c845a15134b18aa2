/**
 * The exported kernels. They keep no state: all addresses are arguments, so that all threads can share one
 * memory.
 */
export { addNormalEquations } from './normal-equations';
export { addDiagonal } from './solve/diagonal';
export { solveCholesky } from './solve/cholesky';
export { solveDual } from './solve/dual';
export { solveFormed, solveMatrixFree } from './solve/conjugate-gradient';
export { addEquationResidual, addTriangleProducts } from './solve/equation-products';
export { addVectorProducts, beginVectors, endVectors, stepVectors } from './solve/exchanged-vectors';
export {
  beginTiledRow,
  endTiledRow,
  passTiles,
  placeRatings,
  startTiledRow,
  stepTiledRow,
} from './solve/tiled/rows';
export { formsLongRows } from './solve/cheaper';
export { canForm, objectiveOf } from './solve/workspace';
export { accumulateRow, solveAccumulated, updateRows } from './update';
export {
  beginLongRow,
  endLongRow,
  passLongRow,
  startLongRow,
  stepLongRow,
  takeLastLongStep,
} from './solve/long-row';
export { addToEquations, takeEquations } from './equations';
export { solveNonnegative } from './solve/nonnegative';
export { addMultiple, sumOf } from './vectors';
export { addErrors, addWeightedNorms } from './errors';
export { addImplicitErrors } from './implicit/errors';
export { gramRows } from './implicit/gram';
export { accumulateImplicit, solveAccumulatedImplicit, updateRowsImplicit } from './implicit/update-implicit';
export { weighRatings } from './implicit/weights';
export { drawRows } from './draw';
export {
  addCounts,
  countCodes,
  countUsed,
  rankCounts,
  subtractLeast,
  takeLowHalves,
  widenRange,
} from './numbering/near-ids';
export { predictPairs } from './predict';
export { beginTopN, offerColumns, finishTopN } from './top-n';
export {
  packRow,
  boundColumns,
  scoreListed,
  beginList,
  enterListed,
  finishList,
  countColumns,
  discountListed,
  shortenLists,
} from './rank-listed';
export { searchChosen, searchColumns } from './search';
export { clearList, offerRows, rankLists, scanLists, sortList } from './lists';
export { packSigns } from './list-signs';
export { stepRatings, stepRows } from './sgd/sgd';
export { adaptRatings, adaptRows } from './sgd/sgd-adaptive';
export { sweepRows } from './sweep';
