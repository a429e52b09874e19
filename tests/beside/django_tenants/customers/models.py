"""The tenants of the site."""

from django_tenants.models import DomainMixin, TenantMixin


class Customer(TenantMixin):
    auto_drop_schema = True


class Domain(DomainMixin):
    pass
