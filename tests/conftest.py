"""For all tests: hypothesis without deadlines, which a busy machine would break."""

from hypothesis import HealthCheck, settings

settings.register_profile("specdec", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("specdec")
