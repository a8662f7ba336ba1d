"""What a plan may ask of rows: one file a question, with how far one record can move it and where that is proved."""

from dpadmm.privacy.questions.base import QUESTIONS, At, Kind, Question, Space, Suspects, View
from dpadmm.privacy.questions.centred_score import SCORE, CentredScore
from dpadmm.privacy.questions.clipped_gradient import GRADIENT, SNAPSHOT, ClippedGradient
from dpadmm.privacy.questions.counts_below import QUANTILE_COUNTS, CountsBelow
from dpadmm.privacy.questions.feature_curvature import CURVATURE, FeatureCurvature
from dpadmm.privacy.questions.feature_moment import FEATURE_MOMENT, FeatureMoment
from dpadmm.privacy.questions.gradient_difference import DIFFERENCE, GradientDifference
from dpadmm.privacy.questions.hidden_passes import HiddenWalk
from dpadmm.privacy.questions.joint_moments import MOMENTS, JointMoments
from dpadmm.privacy.questions.local_minimum import LOCAL_MINIMUM, LocalMinimum
from dpadmm.privacy.questions.row_moments import ROW_MOMENTS, RowMoments
from dpadmm.privacy.questions.second_moment import SECOND_MOMENT, SecondMoment

__all__ = [
    "CURVATURE",
    "DIFFERENCE",
    "FEATURE_MOMENT",
    "GRADIENT",
    "LOCAL_MINIMUM",
    "MOMENTS",
    "QUANTILE_COUNTS",
    "QUESTIONS",
    "ROW_MOMENTS",
    "SCORE",
    "SECOND_MOMENT",
    "SNAPSHOT",
    "At",
    "CentredScore",
    "ClippedGradient",
    "CountsBelow",
    "FeatureCurvature",
    "FeatureMoment",
    "GradientDifference",
    "HiddenWalk",
    "JointMoments",
    "Kind",
    "LocalMinimum",
    "Question",
    "RowMoments",
    "SecondMoment",
    "Space",
    "Suspects",
    "View",
]
